"""The back office of a shop: products, orders, customers and coupons."""

from __future__ import annotations

import re
from sqlite3 import Connection
from typing import Any

from turngym.envs.website.page import OFF, ON
from turngym.envs.website.shop.data import NAV, SCHEMA, STATUSES, TIERS, build, cents
from turngym.envs.website.shop.pages import ANY, PAGES
from turngym.envs.website.site import Request, Site, address, insert, noted, one, steps_to
from turngym.envs.website.words import CATEGORIES

_WHOLE = re.compile(r"\d{1,5}")


def way(database: Connection, path: str) -> tuple[str, ...]:
    """Return the paths that lead to a path: a product is searched for by its name."""
    steps = steps_to(path)
    if steps[0] != "/products" or len(steps) < 2 or steps[1] == "/products/new":
        return steps
    found = one(database, "SELECT name FROM product WHERE id = ?", int(path.split("/")[2]))
    search = (address("/products", {"search": found[0], "category": ANY}),) if found else ()
    return ("/products", *search, *steps[1:])


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _update(database: Connection, table: str, number: int, cells: dict[str, Any]) -> None:
    assigned = ", ".join(f"{name} = ?" for name in cells)
    database.execute(f"UPDATE {table} SET {assigned} WHERE id = ?", (*cells.values(), number))


def _is_there(database: Connection, table: str, request: Request) -> bool:
    return one(database, f"SELECT 1 FROM {table} WHERE id = ?", *request.numbers) is not None


def _product_cells(request: Request) -> dict[str, Any] | None:
    """Return the cells that a form gives a product, None where one is wrong."""
    price, stock = cents(request("price")), _whole(request("stock"))
    if not request("name") or request("category") not in CATEGORIES or price is None or stock is None:
        return None
    shown = ON if request("shown") == ON else OFF
    return {
        "name": request("name"),
        "category": request("category"),
        "price": price,
        "stock": stock,
        "shown": shown,
    }


def _save_product(database: Connection, request: Request) -> str | None:
    if not _is_there(database, "product", request):
        return None
    (number,) = request.numbers
    cells = _product_cells(request)
    if cells is None:
        return noted(f"/products/{number}/edit", "product")
    _update(database, "product", number, cells)
    return noted(f"/products/{number}", "saved")


def _create_product(database: Connection, request: Request) -> str:
    cells = _product_cells(request)
    if cells is None:
        return noted("/products/new", "product")
    return noted(f"/products/{insert(database, 'product', *cells.values())}", "created")


def _save_order(database: Connection, request: Request) -> str | None:
    if not _is_there(database, "sale", request):
        return None
    (number,) = request.numbers
    if request("status") not in STATUSES:
        return noted(f"/orders/{number}/edit", "status")
    _update(database, "sale", number, {"status": request("status"), "note": request("note")})
    return noted(f"/orders/{number}", "saved")


def _save_customer(database: Connection, request: Request) -> str | None:
    if not _is_there(database, "customer", request):
        return None
    (number,) = request.numbers
    cells = {name: request(name) for name in ("email", "city", "tier")}
    if "@" not in cells["email"] or not cells["city"] or cells["tier"] not in TIERS:
        return noted(f"/customers/{number}/edit", "customer")
    _update(database, "customer", number, cells)
    return noted(f"/customers/{number}", "saved")


def _percent(request: Request) -> int | None:
    percent = _whole(request("percent"))
    return percent if percent is not None and 1 <= percent <= 100 else None


def _save_coupon(database: Connection, request: Request) -> str | None:
    if not _is_there(database, "coupon", request):
        return None
    (number,), percent = request.numbers, _percent(request)
    if percent is None:
        return noted(f"/coupons/{number}", "coupon")
    _update(database, "coupon", number, {"percent": percent, "active": ON if request("active") == ON else OFF})
    return noted("/coupons", "saved")


def _create_coupon(database: Connection, request: Request) -> str:
    code, percent = request("code"), _percent(request)
    if not code or percent is None or one(database, "SELECT 1 FROM coupon WHERE lower(code) = lower(?)", code):
        return noted("/coupons/new", "coupon")
    insert(database, "coupon", code, percent, ON if request("active") == ON else OFF)
    return noted("/coupons", "created")


SITE = Site(
    name="shop",
    home="/products",
    nav=NAV,
    schema=SCHEMA,
    gets=PAGES,
    posts={
        "/products/new": _create_product,
        "/products/#/edit": _save_product,
        "/orders/#/edit": _save_order,
        "/customers/#/edit": _save_customer,
        "/coupons/#": _save_coupon,
        "/coupons/new": _create_coupon,
    },
    notes={
        "saved": "Saved.",
        "created": "Created.",
        "product": "Nothing done: a product needs a name, a price such as 12.50 and a whole number in stock.",
        "status": "Nothing done: there is no such status.",
        "customer": "Nothing done: a customer needs an address, a city and a tier.",
        "coupon": "Nothing done: a coupon needs a code of its own and from 1 to 100 percent.",
    },
    build=build,
    way=way,
)
"""The site."""
