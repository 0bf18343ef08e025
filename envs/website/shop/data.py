"""The shop's back office: its tables and their initial content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from sqlite3 import Connection

import numpy as np

from turngym.envs.website import words
from turngym.envs.website.mail.data import email_of
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.site import Tables, one

NAV = {"Products": "/products", "Orders": "/orders", "Customers": "/customers", "Coupons": "/coupons"}
STATUSES = ("paid", "shipped", "cancelled", "refunded")
TIERS = ("basic", "silver", "gold")
SCHEMA = {
    "product": ("name", "category", "price", "stock", "shown"),
    "customer": ("name", "email", "city", "tier"),
    "sale": ("customer", "status", "note"),
    "line": ("sale", "product", "quantity"),
    "coupon": ("code", "percent", "active"),
}
"""Prices are in cents; a sale is what the pages call an order."""
PRODUCTS_EACH, CUSTOMERS, SALES, COUPONS = 5, 8, 18, 3
PERCENTS = (5, 10, 15, 20, 25, 30)
_PRICE = re.compile(r"(\d{1,5})(?:\.(\d{1,2}))?")


def money(cents: int) -> str:
    """Return a price as the pages show it.

    >>> money(1250)
    '12.50'
    """
    return f"{cents // 100}.{cents % 100:02d}"


def cents(text: str) -> int | None:
    """Return the price that a text writes, None if it writes none.

    >>> cents("12.5"), cents("7"), cents("cheap")
    (1250, 700, None)
    """
    found = _PRICE.fullmatch(text)
    return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0")) if found else None


def total_of(database: Connection, sale: int) -> int:
    """Return what an order costs, in cents."""
    query = "SELECT sum(quantity * price) FROM line JOIN product ON product.id = line.product WHERE sale = ?"
    return int(one(database, query, sale)[0] or 0)


def build(generator: np.random.Generator) -> Tables:
    """Make the content of a shop."""

    def some(choices: Sequence[str], count: int) -> list[str]:
        return [choices[place] for place in generator.permutation(len(choices))[:count].tolist()]

    names = some(words.FIRST_NAMES, CUSTOMERS), some(words.LAST_NAMES, CUSTOMERS)
    people = [" ".join(pair) for pair in zip(*names, strict=True)]
    tables: Tables = {name: [] for name in SCHEMA}
    for category in words.CATEGORIES:
        kinds = some(words.GOODS[category], PRODUCTS_EACH - 2)
        wares = [*kinds, kinds[0], kinds[1]]  # some things come in two materials
        for material, ware in zip(some(words.MATERIALS, PRODUCTS_EACH), wares, strict=True):
            price, stock = int(generator.integers(8, 120)) * 50, int(generator.integers(0, 40))
            stock = stock % 5 if generator.random() < 0.4 else stock + 5
            shown = OFF if generator.random() < 0.1 else ON
            tables["product"].append((len(tables["product"]) + 1, f"{material} {ware}", category, price, stock, shown))
    count = len(tables["product"])
    for number, name in enumerate(people, 1):
        tier = TIERS[int(generator.integers(3))]
        city = words.CITIES[int(generator.integers(len(words.CITIES)))]
        tables["customer"].append((number, name, email_of(name), city, tier))
    for number in range(1, SALES + 1):
        status = STATUSES[min(3, int(generator.random() * 6) // 3 + int(generator.random() * 1.6))]
        status = STATUSES[0] if generator.random() < 0.35 else status
        tables["sale"].append((number, people[int(generator.integers(CUSTOMERS))], status, ""))
        for place in sorted(generator.permutation(count)[: int(generator.integers(1, 4))].tolist()):
            quantity = int(generator.integers(1, 4))
            tables["line"].append((len(tables["line"]) + 1, number, place + 1, quantity))
    percents = generator.permutation(PERCENTS)[:COUPONS].tolist()
    for number, (word, percent) in enumerate(zip(some(words.COUPON_WORDS, COUPONS), percents, strict=True), 1):
        tables["coupon"].append((number, f"{word}{percent}", percent, ON if number < COUPONS else OFF))
    return tables
