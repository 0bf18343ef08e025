"""Policy of the shop: the rules, the sums that it pays back, and what must be told."""

from __future__ import annotations

from typing import Any

from turngym.envs.service.domain import Arguments, Policy, Rule
from turngym.envs.service.tables import Record, Tables


def order_of(tables: Tables, arguments: Arguments) -> Record | None:
    """Return the order that arguments are about, None if there is none."""
    if "order" in arguments:
        return tables.get("orders", arguments["order"])
    line = tables.get("lines", arguments.get("line", 0))
    return tables.get("orders", line["order_id"]) if line else None


def owner_of(tables: Tables, arguments: Arguments) -> int | None:
    """Return the customer whose records arguments name, None if they name none."""
    if "customer" in arguments:
        return int(arguments["customer"])
    order = order_of(tables, arguments)
    return int(order["customer"]) if order else None


def is_plus(tables: Tables, order: Record) -> bool:
    """Return whether the customer of an order has tier plus."""
    owner = tables.get("customers", order["customer"])
    return owner is not None and owner["tier"] == "plus"


def _age(policy: Policy, order: Record) -> int:
    return int(policy["today"]) - int(order["day"])


def _status(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    order = order_of(tables, arguments)
    wanted = {
        "cancel_order": ("pending",),
        "change_address": ("pending", "shipped") if policy["moving"] == "pending or shipped" else ("pending",),
    }.get(tool, ("delivered",))
    line = tables.get("lines", arguments.get("line", 0))
    return order is None or order["status"] not in wanted or (line is not None and line["state"] != "kept")


def _cancel_window(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    order = order_of(tables, arguments)
    return tool == "cancel_order" and order is not None and _age(policy, order) > int(policy["cancel_days"])


def _return_window(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    order = order_of(tables, arguments)
    if tool not in ("return_line", "exchange_line") or order is None or order["status"] != "delivered":
        return False
    more = int(policy["plus_days"]) if is_plus(tables, order) else 0
    return _age(policy, order) > int(policy["return_days"]) + more


def _reason(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    return tool == "return_line" and arguments["reason"] not in str(policy["reasons"]).split(", ")


def _stock(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    product = tables.get("products", arguments.get("product", 0))
    return tool == "exchange_line" and (product is None or int(product["stock"]) < 1)


def _price(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    line, product = (tables.get(table, arguments.get(table[:-1], 0)) for table in ("lines", "products"))
    if tool != "exchange_line" or line is None or product is None:
        return False
    is_cheaper = int(product["cents"]) < int(line["cents"]) and policy["price"] == "the same or a lower"
    return product["item"] != line["item"] or not (product["cents"] == line["cents"] or is_cheaper)


def _refund(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    order = order_of(tables, arguments)
    if order is None or "refund" not in arguments:
        return False
    if tool == "cancel_order":
        wanted = refund_of_order(policy, tables, order)
    else:
        line = tables.get("lines", arguments["line"])
        wanted = refund_of_line(policy, order, line, arguments["reason"]) if line else {}
    return any(arguments[key] != value for key, value in wanted.items())


def refund_of_order(policy: Policy, tables: Tables, order: Record) -> dict[str, Any]:
    """Return sum and method of the refund for a cancelled order."""
    total = sum(int(each["cents"]) for each in tables.where("lines", order_id=order["id"]))
    fee = 0 if is_plus(tables, order) else int(policy["cancel_fee"])
    return {"refund": max(0, total - fee), "method": order["paid"]}


def refund_of_line(policy: Policy, order: Record, line: Record, reason: str) -> dict[str, Any]:
    """Return sum and method of the refund for a returned line."""
    fee = int(policy["return_fee"]) if reason == policy["fee_reason"] else 0
    is_late = _age(policy, order) > int(policy["voucher_days"])
    return {"refund": max(0, int(line["cents"]) - fee), "method": "voucher" if is_late else order["paid"]}


RULES = (
    Rule(
        "status",
        (
            "Cancel only pending orders; return and exchange only delivered lines that were kept; change the address "
            "only of orders that are {moving}. Otherwise refuse with status.",
            "Only orders that are {moving} may get another address, only pending ones may be cancelled, and only kept "
            "lines of delivered ones may be returned or exchanged; else refuse with status.",
        ),
        _status,
        "status",
    ),
    Rule(
        "cancel_window",
        (
            "An order may be cancelled up to {cancel_days} days after its day. Later, refuse with window.",
            "Refuse with window to cancel an order that is more than {cancel_days} days old.",
        ),
        _cancel_window,
        "window",
    ),
    Rule(
        "return_window",
        (
            "Lines may be returned or exchanged up to {return_days} days after delivery, for tier plus {plus_days} "
            "days longer. Later, refuse with window.",
            "Returns and exchanges end {return_days} days after delivery; tier plus has {plus_days} more days. After "
            "that, refuse with window.",
        ),
        _return_window,
        "window",
    ),
    Rule(
        "reason",
        (
            "Reasons for a return are {reasons}. Refuse others with reason.",
            "Take lines back only for these reasons: {reasons}. Otherwise refuse with reason.",
        ),
        _reason,
        "reason",
    ),
    Rule(
        "stock",
        (
            "Exchange only for products in stock; otherwise refuse with stock.",
            "A product that is not in stock cannot be given in exchange: refuse with stock.",
        ),
        _stock,
        "stock",
    ),
    Rule(
        "price",
        (
            "Exchange only for another variant of the item at {price} price; otherwise refuse with price.",
            "The new product must be the same item at {price} price. If not, refuse with price.",
        ),
        _price,
        "price",
    ),
    Rule(
        "refund",
        (
            "Cancelling pays back all lines by the way of payment, less {cancel_fee} cents, which tier plus does not "
            "pay. A return pays back the line, less {return_fee} cents if the reason is {fee_reason}; up to "
            "{voucher_days} days after delivery by the way of payment, later by voucher. Never below 0.",
            "Refunds: of a cancelled order, the sum of its lines less {cancel_fee} cents, nothing less for tier plus, "
            "by the way of payment. Of a returned line, its cents, less {return_fee} where the reason is "
            "{fee_reason}, by voucher if delivery was more than {voucher_days} days ago and else by the way of "
            "payment. Never below 0.",
        ),
        _refund,
    ),
)
CUSTOMS = {
    "refund": (
        "After a refund, tell refund with the cents.",
        "Once a refund is made, its cents must be told as refund.",
    ),
    "order": (
        "After any change, tell order with the number of the order.",
        "Whenever something was changed, tell the order number as order.",
    ),
    "days": (
        "Whenever you refuse with window, also tell days with the longest age that the caller may claim.",
        "A refusal with window needs a tell of days, the limit that holds for this caller.",
    ),
}
