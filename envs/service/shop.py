"""The desk of a mail-order shop: cancel, return and exchange orders, change addresses."""

from __future__ import annotations

from typing import Any

from turngym.envs.service.domain import Act, Arguments, Domain, Kind, Policy, Result, Told, Wish
from turngym.envs.service.shop_instances import IDENTITY, SCHEMA, draw_chain, draw_instance
from turngym.envs.service.shop_policy import (
    CUSTOMS,
    RULES,
    is_plus,
    order_of,
    owner_of,
    refund_of_line,
    refund_of_order,
)
from turngym.envs.service.tables import Tables


def find_customer(tables: Tables, name: str = "", email: str = "", zip: str = "") -> Result:
    """Find the customer with all given details."""
    given = {key: value for key, value in (("name", name), ("email", email), ("zip", zip)) if value}
    found = tables.where("customers", **given) if given else []
    if len(found) != 1:
        return Result("no customer" if not found else f"{len(found)} customers")
    return Result(f"customer {found[0]['id']}: {found[0]['name']}, tier {found[0]['tier']}", (("customers", found[0]),))


def list_orders(tables: Tables, customer: int) -> Result:
    """List the numbers of a customer's orders."""
    found = tables.where("orders", customer=customer)
    return Result("orders " + (", ".join(str(each["id"]) for each in found) or "none"))


def get_order(tables: Tables, order: int) -> Result:
    """Show an order with its lines."""
    found = tables.get("orders", order)
    if found is None:
        return Result(f"no order {order}")
    lines = tables.where("lines", order_id=order)
    shown = "; ".join(
        f"line {each['id']}: {each['item']}, product {each['product']}, {each['cents']} cents, {each['state']}"
        for each in lines
    )
    text = (
        f"order {order} of customer {found['customer']}: {found['status']} on day {found['day']}, paid by "
        f"{found['paid']}, to {found['address']}; {shown}"
    )
    return Result(text, (("orders", found), *(("lines", each) for each in lines)))


def find_products(tables: Tables, item: str) -> Result:
    """List the variants of an item."""
    found = tables.where("products", item=item)
    shown = "; ".join(
        f"product {each['id']}: {each['variant']}, {each['cents']} cents, {each['stock']} in stock" for each in found
    )
    return Result(f"{item}: {shown}" if found else "no such item", tuple(("products", each) for each in found))


def cancel_order(tables: Tables, order: int, refund: int, method: str) -> Result:
    """Cancel an order and pay back a sum.

    Args:
        tables: The records.
        order: Its number.
        refund: The sum in cents.
        method: card, account or voucher.
    """
    if tables.get("orders", order) is None:
        return Result(f"no order {order}")
    changed = tables.set("orders", order, status="cancelled")
    paid = tables.add("refunds", order_id=order, line=0, cents=refund, method=method, reason="cancelled")
    return Result(
        f"done: order {order} cancelled, refund {refund} by {method}", (("orders", changed), ("refunds", paid))
    )


def return_line(tables: Tables, line: int, reason: str, refund: int, method: str) -> Result:
    """Take a line of an order back and pay back a sum.

    Args:
        tables: The records.
        line: Its number.
        reason: The caller's reason.
        refund: The sum in cents.
        method: card, account or voucher.
    """
    found = tables.get("lines", line)
    if found is None:
        return Result(f"no line {line}")
    changed = tables.set("lines", line, state="returned")
    order = found["order_id"]
    paid = tables.add("refunds", order_id=order, line=line, cents=refund, method=method, reason=reason)
    return Result(f"done: line {line} returned, refund {refund} by {method}", (("lines", changed), ("refunds", paid)))


def exchange_line(tables: Tables, line: int, product: int) -> Result:
    """Exchange a line of an order for another product.

    Args:
        tables: The records.
        line: Its number.
        product: Number of the new product.
    """
    found, wanted = tables.get("lines", line), tables.get("products", product)
    if found is None or wanted is None:
        return Result(f"no line {line}" if found is None else f"no product {product}")
    changed = tables.set("lines", line, product=product, state="exchanged")
    left = tables.set("products", product, stock=int(wanted["stock"]) - 1)
    return Result(f"done: line {line} exchanged for product {product}", (("lines", changed), ("products", left)))


def change_address(tables: Tables, order: int, address: str) -> Result:
    """Send an order to another address.

    Args:
        tables: The records.
        order: Its number.
        address: Street and town.
    """
    if tables.get("orders", order) is None:
        return Result(f"no order {order}")
    changed = tables.set("orders", order, address=address)
    return Result(f"done: order {order} goes to {address}", (("orders", changed),))


def _calls(policy: Policy, tables: Tables, wish: Wish) -> list[dict[str, Any]]:
    order = tables.get("orders", wish["order"])
    lines = tables.where("lines", order_id=wish["order"], item=wish["item"]) if "item" in wish else []
    if order is None:
        return []
    if wish["kind"] == "cancel":
        return [{"order": order["id"], **refund_of_order(policy, tables, order)}]
    if wish["kind"] == "address":
        return [{"order": order["id"], "address": wish["address"]}]
    if wish["kind"] == "return":
        reason = wish["reason"]
        return [{"line": each["id"], "reason": reason, **refund_of_line(policy, order, each, reason)} for each in lines]
    return [
        {"line": line["id"], "product": each["id"]}
        for line in lines
        for each in tables.where("products", item=line["item"])
        if each["id"] != line["product"] and wish["variant"] in (each["variant"], "any")
    ]


def _facts(policy: Policy, tables: Tables, wish: Wish, arguments: Arguments, refusal: str) -> list[Told]:
    order = order_of(tables, arguments) or tables.get("orders", wish.get("order", 0))
    if order is None:
        return []
    if refusal:
        more = int(policy["plus_days"]) if is_plus(tables, order) else 0
        limit = policy["cancel_days"] if wish["kind"] == "cancel" else int(policy["return_days"]) + more
        return [("days", limit)] if refusal == "window" else []
    if wish["kind"] == "status":
        return [("status", order["status"])]
    refund = [("refund", arguments["refund"])] if "refund" in arguments else []
    return [*refund, ("order", order["id"])]


def _differs(tables: Tables, wish: Wish, arguments: Arguments) -> str:
    order, line = order_of(tables, arguments), tables.get("lines", arguments.get("line", 0))
    product = tables.get("products", arguments.get("product", 0))
    if order is None or order["id"] != wish["order"]:
        return "order"
    if line is not None and line["item"] != wish["item"]:
        return "item"
    if product is not None and wish["variant"] not in (product["variant"], "any"):
        return "variant"
    if "product" in arguments and (product is None or line is None or product["item"] != line["item"]):
        return "variant"
    return next((key for key in ("reason", "address") if key in arguments and arguments[key] != wish[key]), "")


def _found(tables: Tables, wish: Wish) -> int | None:
    lines = tables.where("lines", item=wish.get("item", ""))
    return int(lines[0]["order_id"]) if lines else None


def _reading(tables: Tables, wish: Wish, customer: int) -> Act | None:
    if tables.get("orders", wish.get("order", 0)) is None and wish.get("order"):
        return Act("call", "get_order", {"order": wish["order"]})
    if wish["kind"] == "exchange" and wish.get("item") and not tables.where("products", item=wish["item"]):
        return Act("call", "find_products", {"item": wish["item"]})
    return None


def _decoys(tables: Tables, tool: str, arguments: Arguments) -> list[dict[str, Any]]:
    if "refund" in arguments:
        line = tables.get("lines", arguments.get("line", 0))
        full = int(line["cents"]) if line else int(arguments["refund"]) + 100
        other = "card" if arguments["method"] == "voucher" else "voucher"
        return [{**arguments, "refund": full}, {**arguments, "method": other}, {**arguments, "refund": 0}]
    if tool == "exchange_line":
        return [{**arguments, "product": each["id"]} for each in tables.where("products")[:3]]
    return []


_PHRASES = {
    "cancel": ("I want to cancel an order", "please call off my order", "I no longer need what I orderd"),
    "return": ("I want to send something back", "I'd like to return a thing", "this has to go back to you"),
    "exchange": ("I want another variant of something", "can I swap an item", "I'd like to exchange a thing"),
    "address": ("I have moved, my order must go elsewhere", "the adress of my order is wrong", "send it elsewhere"),
    "status": ("where is my order", "what is the state of my order", "I want to know how my order is doing"),
    "other": ("I want a discount as my neighbour got", "I need a company invoice", "I want to sell you something"),
}
SHOP = Domain(
    name="shop",
    title="the service desk of a mail-order shop",
    schema=SCHEMA,
    reads=(find_customer, list_orders, get_order, find_products),
    writes=(cancel_order, return_line, exchange_line, change_address),
    identity=IDENTITY,
    kinds={
        "cancel": Kind("cancel_order", ("order",)),
        "return": Kind("return_line", ("order", "item", "reason")),
        "exchange": Kind("exchange_line", ("order", "item", "variant")),
        "address": Kind("change_address", ("order", "address")),
        "status": Kind("", ("order",), "status"),
        "other": Kind("", ()),
    },
    phrases=_PHRASES,
    reference="order",
    description="item",
    rules=RULES,
    customs=CUSTOMS,
    refusals=("status", "window", "reason", "stock", "price"),
    draw=draw_instance,
    wish=draw_chain,
    calls=_calls,
    facts=_facts,
    differs=_differs,
    owner=owner_of,
    found=_found,
    reading=_reading,
    decoys=_decoys,
)
