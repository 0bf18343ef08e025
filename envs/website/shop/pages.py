"""The pages of the back office of the shop."""

from __future__ import annotations

from sqlite3 import Connection

from turngym.envs.website.page import ON, PageMaker, box, button, field, link, select
from turngym.envs.website.shop.data import NAV, STATUSES, TIERS, money, total_of
from turngym.envs.website.site import Get, Request, on_page, one, rows, turn_pages
from turngym.envs.website.words import CATEGORIES

ANY = "any"


def _products(database: Connection, request: Request) -> PageMaker:
    words, category = request("search"), request("category", ANY)
    maker = PageMaker("Products", NAV)
    form = maker.form("/products", is_search=True)
    maker.row(
        field("search", words, form), select("category", category, (ANY, *CATEGORIES), form), button("Find", form)
    )
    query = (
        "SELECT id, name, price, stock, shown FROM product WHERE instr(lower(name), lower(?)) > 0"
        " AND ? IN (category, 'any') ORDER BY id"
    )
    found = rows(database, query, words, category)
    for number, name, price, stock, shown in on_page(found, request):
        hidden = "" if shown == ON else ", hidden"
        maker.row(link(name, f"/products/{number}"), f"{money(price)}, stock {stock}{hidden}")
    if not found:
        maker.row("no products")
    turn_pages(maker, "/products", request, len(found))
    maker.row(link("New product", "/products/new"))
    return maker


def _product(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT name, category, price, stock, shown FROM product WHERE id = ?", number)
    if found is None:
        return None
    name, category, price, stock, shown = found
    maker = PageMaker(name, NAV)
    maker.row(f"{category}, price {money(price)}, stock {stock}, shown {shown}")
    maker.row(link("Edit", f"/products/{number}/edit"))
    query = (
        "SELECT sale.id, customer, status FROM sale JOIN line ON line.sale = sale.id WHERE product = ? ORDER BY sale.id"
    )
    orders = rows(database, query, number)
    maker.row("in orders:" if orders else "in no orders")
    for sale, customer, status in on_page(orders, request):
        maker.row(link(f"Order {sale}", f"/orders/{sale}"), f"{customer}, {status}")
    turn_pages(maker, f"/products/{number}", request, len(orders))
    return maker


def _product_form(maker: PageMaker, path: str, cells: tuple[str, str, str, str, str], send: str) -> PageMaker:
    name, category, price, stock, shown = cells
    form = maker.form(path)
    maker.row(field("name", name, form))
    maker.row(select("category", category, CATEGORIES, form))
    maker.row(field("price", price, form))
    maker.row(field("stock", stock, form))
    maker.row(box("shown", shown == ON, form))
    maker.row(button(send, form))
    return maker


def _edit_product(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT name, category, price, stock, shown FROM product WHERE id = ?", number)
    if found is None:
        return None
    name, category, price, stock, shown = found
    cells = name, category, money(price), str(stock), shown
    return _product_form(PageMaker("Edit product", NAV), f"/products/{number}/edit", cells, "Save")


def _new_product(database: Connection, request: Request) -> PageMaker:
    return _product_form(PageMaker("New product", NAV), "/products/new", ("", CATEGORIES[0], "", "0", ON), "Create")


def _orders(database: Connection, request: Request) -> PageMaker:
    words, status = request("customer"), request("status", ANY)
    maker = PageMaker("Orders", NAV)
    form = maker.form("/orders", is_search=True)
    maker.row(field("customer", words, form), select("status", status, (ANY, *STATUSES), form), button("Find", form))
    query = (
        "SELECT id, customer, status FROM sale WHERE instr(lower(customer), lower(?)) > 0 AND ? IN (status, 'any')"
        " ORDER BY id"
    )
    found = rows(database, query, words, status)
    for number, customer, state in on_page(found, request):
        maker.row(link(f"Order {number}", f"/orders/{number}"), f"{customer}, {state}")
    if not found:
        maker.row("no orders")
    turn_pages(maker, "/orders", request, len(found))
    return maker


def _order(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(
        database,
        "SELECT customer, status, note, (SELECT id FROM customer WHERE name = sale.customer) FROM sale WHERE id = ?",
        number,
    )
    if found is None:
        return None
    customer, status, note, place = found
    maker = PageMaker(f"Order {number}", NAV)
    maker.row("customer:", link(customer, f"/customers/{place}") if place else customer)
    maker.row(f"status {status}, total {money(total_of(database, number))}")
    maker.row(f"note: {note}" if note else "no note")
    query = "SELECT product.id, quantity, name FROM line JOIN product ON product.id = line.product WHERE sale = ?"
    for product, quantity, name in rows(database, f"{query} ORDER BY line.id", number):
        maker.row(f"{quantity} x", link(name, f"/products/{product}"))
    maker.row(link("Edit", f"/orders/{number}/edit"))
    return maker


def _edit_order(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT status, note FROM sale WHERE id = ?", number)
    if found is None:
        return None
    maker = PageMaker(f"Edit order {number}", NAV)
    form = maker.form(f"/orders/{number}/edit")
    maker.row(select("status", found[0], STATUSES, form))
    maker.row(field("note", found[1], form))
    maker.row(button("Save", form), link("Cancel", f"/orders/{number}"))
    return maker


def _customers(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Customers", NAV)
    query = (
        "SELECT customer.id, customer.name, tier, (SELECT coalesce(sum(quantity * price), 0) FROM sale"
        " JOIN line ON line.sale = sale.id JOIN product ON product.id = line.product"
        " WHERE sale.customer = customer.name) FROM customer ORDER BY customer.id"
    )
    found = rows(database, query)
    for number, name, tier, spent in on_page(found, request):
        maker.row(link(name, f"/customers/{number}"), f"{tier}, ordered for {money(spent)}")
    turn_pages(maker, "/customers", request, len(found))
    return maker


def _customer(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT name, email, city, tier FROM customer WHERE id = ?", number)
    if found is None:
        return None
    name, email, city, tier = found
    maker = PageMaker(f"Customer {name}", NAV)
    maker.row(f"{email}, city {city}, tier {tier}")
    maker.row(link("Edit", f"/customers/{number}/edit"))
    orders = rows(database, "SELECT id, status FROM sale WHERE customer = ? ORDER BY id", name)
    for sale, status in on_page(orders, request):
        maker.row(link(f"Order {sale}", f"/orders/{sale}"), status)
    if not orders:
        maker.row("no orders")
    turn_pages(maker, f"/customers/{number}", request, len(orders))
    return maker


def _edit_customer(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT email, city, tier FROM customer WHERE id = ?", number)
    if found is None:
        return None
    maker = PageMaker("Edit customer", NAV)
    form = maker.form(f"/customers/{number}/edit")
    maker.row(field("email", found[0], form))
    maker.row(field("city", found[1], form))
    maker.row(select("tier", found[2], TIERS, form))
    maker.row(button("Save", form), link("Cancel", f"/customers/{number}"))
    return maker


def _coupons(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("Coupons", NAV)
    found = rows(database, "SELECT id, code, percent, active FROM coupon ORDER BY id")
    for number, code, percent, active in on_page(found, request):
        maker.row(link(code, f"/coupons/{number}"), f"{percent} percent, active {active}")
    turn_pages(maker, "/coupons", request, len(found))
    maker.row(link("New coupon", "/coupons/new"))
    return maker


def _coupon(database: Connection, request: Request) -> PageMaker | None:
    (number,) = request.numbers
    found = one(database, "SELECT code, percent, active FROM coupon WHERE id = ?", number)
    if found is None:
        return None
    maker = PageMaker(f"Coupon {found[0]}", NAV)
    form = maker.form(f"/coupons/{number}")
    maker.row(field("percent", str(found[1]), form))
    maker.row(box("active", found[2] == ON, form))
    maker.row(button("Save", form))
    return maker


def _new_coupon(database: Connection, request: Request) -> PageMaker:
    maker = PageMaker("New coupon", NAV)
    form = maker.form("/coupons/new")
    maker.row(field("code", "", form))
    maker.row(field("percent", "", form))
    maker.row(box("active", False, form))
    maker.row(button("Create", form))
    return maker


PAGES: dict[str, Get] = {
    "/products": _products,
    "/products/new": _new_product,
    "/products/#": _product,
    "/products/#/edit": _edit_product,
    "/orders": _orders,
    "/orders/#": _order,
    "/orders/#/edit": _edit_order,
    "/customers": _customers,
    "/customers/#": _customer,
    "/customers/#/edit": _edit_customer,
    "/coupons": _coupons,
    "/coupons/new": _new_coupon,
    "/coupons/#": _coupon,
}
"""Path -> what makes the page."""
