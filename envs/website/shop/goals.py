"""Goals in the shop's back office."""

from __future__ import annotations

from typing import Any

from turngym.envs.website import words
from turngym.envs.website.draw import Draw, Maker, NoGoal, Record
from turngym.envs.website.goal import Goal, Task, Wanted, look, sets
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.shop.data import PERCENTS, money
from turngym.envs.website.site import address, pages_of

MOST = 3
"""Rows that one goal is about at most."""


def _entered(name: str, value: Any) -> str:
    """Return a cell as its form takes it."""
    return money(value) if name == "price" else str(value)


def _edit(table: str, place: str, record: Record, via: tuple[str, ...] = (), **cells: Any) -> Task:
    """Return the task of changing a row by its edit page."""
    page = f"/{place}/{record['id']}"
    fields = {name: _entered(name, value) for name, value in cells.items()}
    by = (*via, page) if via else ()
    return Task(f"{page}/edit", f"{page}/edit", fields, sets(table, record["id"], **cells), by)


def _few(found: list[Record], low: int = 1) -> list[Record]:
    """Return some rows, if they are as many as a goal may be about."""
    if not low <= len(found) <= MOST:
        raise NoGoal
    return found


def _to_customer(draw: Draw, customer: Record) -> tuple[str, ...]:
    """Return the way to the page of a customer."""
    return "/customers", f"/customers/{customer['id']}"


def _looks(by: tuple[str, ...], total: int) -> list[Task]:
    """Return the tasks of looking at all pages of a list."""
    return [look(path, *by) for path in pages_of(by[-1], total)]


def _new_coupon(code: str, percent: int) -> Task:
    """Return the task of making an active coupon."""
    fields = {"code": code, "percent": str(percent), "active": ON}
    wanted = Wanted("coupon", 0, {"code": code, "percent": percent, "active": ON})
    return Task("/coupons/new", "/coupons/new", fields, (wanted,), ("/coupons",))


def reprice(draw: Draw) -> Goal:
    """Set price and stock of a product."""
    product = draw.one(draw.records("product"))
    price, stock = draw.whole(8, 120) * 50 + 25, draw.whole(50, 90)
    text = f"Set the price of the product {product['name']} to {money(price)} and its stock to {stock}."
    return Goal(text, (_edit("product", "products", product, price=price, stock=stock),))


def restock(draw: Draw) -> Goal:
    """Fill up what a category is short of."""
    category, stock, limit = draw.one(words.CATEGORIES), draw.whole(4, 9) * 5, 5
    products = draw.records("product", category=category)
    short = _few([each for each in products if each["stock"] < limit], 2)
    text = f"Set the stock of every {category} product that has less than {limit} in stock to {stock}."
    by = ("/products", address("/products", {"search": "", "category": category}))
    edits = [_edit("product", "products", each, by, stock=stock) for each in short]
    return Goal(text, (*_looks(by, len(products)), *edits))


def ship(draw: Draw) -> Goal:
    """Mark the paid orders of a customer as shipped."""
    customer = draw.one(draw.records("customer"))
    orders = draw.records("sale", customer=customer["name"])
    paid = _few([each for each in orders if each["status"] == "paid"])
    text = f"Set every paid order of {customer['name']} to shipped."
    by = _to_customer(draw, customer)
    return Goal(
        text, (*_looks(by, len(orders)), *(_edit("sale", "orders", each, by, status="shipped") for each in paid))
    )


def refund(draw: Draw) -> Goal:
    """Refund the order of a customer that has some product in it."""
    line = draw.one(draw.records("line"))
    order = draw.one(draw.records("sale", id=line["sale"]))
    product = draw.one(draw.records("product", id=line["product"]))
    customer = draw.one(draw.records("customer", name=order["customer"]))
    orders = draw.records("sale", customer=customer["name"])
    same = {each["sale"] for each in draw.records("line", product=product["id"])}
    if order["status"] not in ("paid", "shipped") or len([each for each in orders if each["id"] in same]) > 1:
        raise NoGoal
    note, by = draw.one(words.ORDER_NOTES), _to_customer(draw, customer)
    text = (
        f"Refund the order of {customer['name']} that has the {product['name']} in it: set it to refunded, "
        f'with the note "{note}".'
    )
    before = _few([each for each in orders if each["id"] <= order["id"]])
    edit = _edit("sale", "orders", order, by, status="refunded", note=note)
    return Goal(text, (*(look(f"/orders/{each['id']}", *by) for each in before), edit))


def swap_coupons(draw: Draw) -> Goal:
    """Make one coupon, and switch off another."""
    coupons = draw.records("coupon")
    old = draw.one([each for each in coupons if each["active"] == ON])
    percent, taken = draw.one(PERCENTS), {each["code"] for each in coupons}
    code = draw.one([f"{word}{percent}" for word in words.COUPON_WORDS if f"{word}{percent}" not in taken])
    text = f'Make the active coupon "{code}" of {percent} percent, and make the coupon {old["code"]} inactive.'
    page = f"/coupons/{old['id']}"
    return Goal(
        text, (_new_coupon(code, percent), Task(page, page, {"active": OFF}, sets("coupon", old["id"], active=OFF)))
    )


def add_product(draw: Draw) -> Goal:
    """Add a product."""
    category = draw.one(words.CATEGORIES)
    taken = {each["name"] for each in draw.records("product")}
    name = f"{draw.one(words.MATERIALS)} {draw.one(words.GOODS[category])}"
    price, stock, shown = draw.whole(8, 120) * 50, draw.whole(5, 60), draw.one((ON, OFF))
    if name in taken:
        raise NoGoal
    cells: dict[str, str | int] = {"name": name, "category": category, "price": price, "stock": stock, "shown": shown}
    text = (
        f'Add the product "{name}" to the category {category}, with price {money(price)} and stock {stock}, '
        f"{'shown' if shown == ON else 'not shown'}."
    )
    fields = {key: _entered(key, value) for key, value in cells.items()}
    path = "/products/new"
    return Goal(text, (Task(path, path, fields, (Wanted("product", 0, cells),), ("/products",)),))


def raise_prices(draw: Draw) -> Goal:
    """Raise the price of every product of a name."""
    ware = draw.one(words.GOODS[draw.one(words.CATEGORIES)])
    products, more = _few([each for each in draw.records("product") if ware in each["name"]], 2), draw.whole(1, 5) * 100
    text = f'Raise the price of every product with "{ware}" in its name by {money(more)}.'
    by = ("/products", address("/products", {"search": ware, "category": "any"}))
    edits = [_edit("product", "products", each, by, price=each["price"] + more) for each in products]
    return Goal(text, (look(by[1], by[0]), *edits))


def recall(draw: Draw) -> Goal:
    """Hide a product, and cancel the paid orders that have it."""
    product = draw.one(draw.records("product", shown=ON))
    sales = {each["sale"] for each in draw.records("line", product=product["id"])}
    orders = _few([each for each in draw.records("sale", status="paid") if each["id"] in sales])
    text = (
        f"The {product['name']} is recalled: change the product to not shown, and set every paid order that has it "
        "to cancelled."
    )
    page = f"/products/{product['id']}"
    by = ("/products", address("/products", {"search": product["name"], "category": "any"}), page)
    hide = _edit("product", "products", product, shown=OFF)
    cancels = [_edit("sale", "orders", each, by, status="cancelled") for each in orders]
    return Goal(text, (*_looks(by, len(sales)), hide, *cancels))


def moved(draw: Draw) -> Goal:
    """Change the city of a customer, and note it on the paid orders."""
    customer, note = draw.one(draw.records("customer")), draw.one(words.ORDER_NOTES)
    city = draw.one([each for each in words.CITIES if each != customer["city"]])
    orders = draw.records("sale", customer=customer["name"])
    paid = _few([each for each in orders if each["status"] == "paid"])
    text = (
        f'{customer["name"]} has moved to "{city}": change the city, and put the note "{note}" on every paid order of '
        f"{customer['name']}."
    )
    by = _to_customer(draw, customer)
    notes = [_edit("sale", "orders", each, by, note=note) for each in paid]
    return Goal(text, (_edit("customer", "customers", customer, city=city), *_looks(by, len(orders)), *notes))


def best_customer(draw: Draw) -> Goal:
    """Give a tier and a coupon to whoever has ordered for the most."""
    customers = draw.records("customer")
    prices = {each["id"]: each["price"] for each in draw.records("product")}
    names = {each["id"]: each["customer"] for each in draw.records("sale")}
    spent = dict.fromkeys((each["name"] for each in customers), 0)
    for line in draw.records("line"):
        spent[names[line["sale"]]] += line["quantity"] * prices[line["product"]]
    most = [each for each in customers if spent[each["name"]] == max(spent.values())]
    tier = draw.one(("silver", "gold"))
    if len(most) > 1 or most[0]["tier"] == tier:
        raise NoGoal
    name, percent = most[0]["name"], draw.one(PERCENTS)
    text = (
        f"Give the tier {tier} to the customer who has ordered for the most money, and make an active coupon of "
        f"{percent} percent whose code is the name of that customer."
    )
    edit = _edit("customer", "customers", most[0], tier=tier)
    coupon = _new_coupon(name, percent)  # cannot be undone: trying one customer after another is no way
    return Goal(text, (*_looks(("/customers",), len(customers)), edit, coupon))


KINDS: dict[str, Maker] = {
    "reprice": reprice,
    "restock": restock,
    "ship": ship,
    "refund": refund,
    "swap_coupons": swap_coupons,
    "add_product": add_product,
    "raise_prices": raise_prices,
    "recall": recall,
    "moved": moved,
    "best_customer": best_customer,
}
"""Kind of goal -> what makes one."""
