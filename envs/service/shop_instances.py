"""Instances of the shop: parameters of its policy, its records, and wishes of customers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

from turngym.envs.service.domain import Policy, checked_number
from turngym.envs.service.shop_policy import CUSTOMS
from turngym.envs.service.tables import Record, Tables
from turngym.envs.website.draw import Dice
from turngym.envs.website.store import Cell
from turngym.envs.website.words import CITIES, FIRST_NAMES, GOODS, LAST_NAMES

SCHEMA = {
    "customers": ("name", "email", "zip", "tier"),
    "orders": ("customer", "status", "day", "paid", "address"),
    "lines": ("order_id", "item", "product", "cents", "state"),
    "products": ("item", "variant", "cents", "stock"),
    "refunds": ("order_id", "line", "cents", "method", "reason"),
}
_ITEMS = tuple(item for goods in GOODS.values() for item in goods)
_VARIANTS = ("small", "medium", "large", "grey", "green", "white")
_STREETS = ("Mill Lane", "Station Road", "Harbour Street", "Park Avenue", "Church Hill", "Garden Row", "Bridge Street")
_REASONS = ("damaged", "wrong_item", "too_small", "too_large", "changed_mind")
_STATUSES = ("pending", "shipped", "delivered", "delivered")
IDENTITY = ("name", "email", "zip")
_ORDERS = tuple(permutations(IDENTITY))


def draw_instance(dice: Dice, customers: int) -> tuple[dict[str, Cell], dict[str, dict[int, Record]], int]:
    """Return parameters of a policy, records, and the customer whose account a call is about."""
    first, second, spare = dice.one(_ORDERS)
    policy: dict[str, Cell] = {
        "today": dice.whole(100, 330),
        "first": first,
        "second": second,
        "spare": spare,
        "moving": dice.one(("pending", "pending or shipped")),
        "cancel_days": dice.whole(2, 9),
        "cancel_fee": 10 * dice.whole(5, 60),
        "return_days": dice.whole(10, 40),
        "plus_days": dice.whole(3, 20),
        "voucher_days": dice.whole(5, 30),
        "reasons": ", ".join(dice.some(_REASONS, 3, 4)),
        "return_fee": 10 * dice.whole(5, 60),
        "price": dice.one(("the same", "the same or a lower")),
        "wording": dice.whole(0, 1),
        **{f"tell_{key}": dice.whole(0, 1) for key in CUSTOMS},
    }
    policy["fee_reason"] = dice.one(str(policy["reasons"]).split(", "))
    rows: dict[str, dict[int, Record]] = {table: {} for table in SCHEMA}
    items = dice.some(_ITEMS, 6, 6)
    number = dice.whole(10, 80) * 10
    for item in items:
        base = 10 * dice.whole(80, 600)
        for variant in dice.some(_VARIANTS, 2, 4):
            number += dice.whole(1, 3)
            cents = base + 10 * dice.one((0, 0, 0, -20, 30))
            _put(rows, "products", number, item=item, variant=variant, cents=cents, stock=dice.one((0, 1, 2, 5)))
    numbers = [dice.whole(100, 199)]
    while len(numbers) < customers:
        numbers.append(numbers[-1] + dice.whole(1, 90))
    products: dict[str, list[Record]] = {item: [] for item in items}
    for product in rows["products"].values():
        products[str(product["item"])].append(product)
    for number in numbers:
        _customer(dice, rows, number, policy, products)
    return policy, rows, dice.one(numbers)


def _put(rows: dict[str, dict[int, Record]], table: str, number: int, **cells: Cell) -> None:
    rows[table][number] = {"id": number, **cells}


def _customer(
    dice: Dice,
    rows: dict[str, dict[int, Record]],
    number: int,
    policy: Policy,
    products: Mapping[str, Sequence[Record]],
) -> None:
    first, last = dice.one(FIRST_NAMES), dice.one(LAST_NAMES)
    email = f"{first.lower()}.{last.lower()}{dice.whole(10, 99)}@mail.example"
    place, tier = str(dice.whole(10_000, 99_999)), dice.one(("basic", "plus"))
    _put(rows, "customers", number, name=f"{first} {last}", email=email, zip=place, tier=tier)
    bought = dice.some(tuple(products), 4, 4)
    address = f"{dice.whole(1, 99)} {dice.one(_STREETS)}, {dice.one(CITIES)}"
    for part in (bought[:2], bought[2:]) if dice.share() < 0.6 else (bought[:1], bought[1:3], bought[3:]):
        order = _order_number(dice, rows)
        status = dice.one(_STATUSES)
        limit = int(policy["cancel_days"] if status == "pending" else policy["return_days"])
        day = int(policy["today"]) - dice.whole(0, limit + limit // 4)
        paid = dice.one(("card", "account"))
        _put(rows, "orders", order, customer=number, status=status, day=day, paid=paid, address=address)
        for line, item in enumerate(part, 10 * order + 1):
            product = dice.one(products[item])
            cells = {"product": product["id"], "cents": product["cents"], "state": "kept"}
            _put(rows, "lines", line, order_id=order, item=item, **cells)


def _order_number(dice: Dice, rows: dict[str, dict[int, Record]]) -> int:
    while True:
        number = checked_number(dice.whole(1000, 9999))
        if number not in rows["orders"]:
            return number


def draw_chain(dice: Dice, policy: Policy, tables: Tables, customer: int, used: Sequence[int]) -> list[dict[str, Any]]:
    """Return a wish about an order that is not used yet, and what is wanted instead of it."""
    order = dice.one([each for each in tables.where("orders", customer=customer) if each["id"] not in used])
    line = dice.one(tables.where("lines", order_id=order["id"]))
    kinds = {"pending": ("cancel", "address", "cancel"), "shipped": ("address", "cancel")}
    kind = dice.one(kinds.get(str(order["status"]), ("return", "exchange"))) if dice.share() < 0.9 else "return"
    others = {"return": "exchange", "exchange": "return", "cancel": "address", "address": "cancel"}
    kept = {"order": order["id"], "item": line["item"], "reason": dice.one(_REASONS)}
    products = tables.where("products", item=line["item"])
    variants = [each["variant"] for each in products if each["id"] != line["product"]]
    kept["variant"] = dice.one([*variants, "any"])
    kept["address"] = f"{dice.whole(1, 99)} {dice.one(_STREETS)}, {dice.one(CITIES)}"
    return [{**kept, "kind": each, "worth": int(line["cents"])} for each in (kind, others[kind])]
