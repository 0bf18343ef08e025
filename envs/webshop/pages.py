"""The pages of the shop: what each shows, and what can be clicked on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.product import Product

PAGE_SIZE = 10
SEARCH, RESULTS, ITEM, BOUGHT = "search", "results", "item", "bought"
BACK_TO_SEARCH, NEXT, PREVIOUS, BUY = "back to search", "next >", "< prev", "buy now"
DETAILS = ("description", "features", "reviews")
FIXED = frozenset((BACK_TO_SEARCH, PREVIOUS, NEXT, BUY, *DETAILS))
"""Elements with the same name on every page that has them."""


@dataclass(frozen=True)
class View:
    """Where a customer is in the shop.

    Args:
        page: ``"search"``, ``"results"``, ``"item"`` or ``"bought"``.
        query: The last search.
        number: Which page of results, from 0.
        asin: The product looked at, in lower case.
        detail: The part of its description that is open, empty for none.
        chosen: Option name -> value chosen.
    """

    page: str = SEARCH
    query: str = ""
    number: int = 0
    asin: str = ""
    detail: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)


class Move(NamedTuple):
    """Actions of a customer.

    Args:
        target: The words to search for, or what is clicked.
        is_search: Whether it is a search.
    """

    target: str
    is_search: bool = False


def results(catalogue: Catalogue, view: View) -> tuple[Product, ...]:
    """Return the products on the current page of results."""
    first = view.number * PAGE_SIZE
    return catalogue.search(view.query)[first : first + PAGE_SIZE]


def clickables(catalogue: Catalogue, view: View) -> tuple[str, ...]:
    """Return what can be clicked, in the order of the page, in lower case."""
    if view.page == RESULTS:
        total = len(catalogue.search(view.query))
        found = [BACK_TO_SEARCH]
        found += [PREVIOUS] if view.number else []
        found += [NEXT] if (view.number + 1) * PAGE_SIZE < total else []
        return (*found, *(product.asin.lower() for product in results(catalogue, view)))
    if view.page == ITEM and view.detail:
        return BACK_TO_SEARCH, PREVIOUS
    if view.page == ITEM:
        options = catalogue.by_asin[view.asin].options
        values = dict.fromkeys(value for each in options.values() for value in each)
        return (BACK_TO_SEARCH, PREVIOUS, *DETAILS, BUY, *(value for value in values if value not in FIXED))
    return ()


def after(catalogue: Catalogue, view: View, move: Move) -> View:
    """Return where a move leads that the page allows."""
    return View(RESULTS, move.target) if move.is_search else click(catalogue, view, move.target)


def click(catalogue: Catalogue, view: View, target: str) -> View:
    """Return where a click leads; ``target`` is one of :func:`clickables`."""
    if target == BACK_TO_SEARCH:
        return View()
    if target == NEXT:
        return replace(view, number=view.number + 1)
    if target == PREVIOUS:
        return _back(view)
    if view.page == RESULTS:
        return replace(view, page=ITEM, asin=target)
    if target == BUY:
        return replace(view, page=BOUGHT)
    if target in DETAILS:
        return replace(view, detail=target)
    options = catalogue.by_asin[view.asin].options
    chosen = {name: target for name, values in options.items() if target in values}
    return replace(view, chosen={**view.chosen, **chosen})


def _back(view: View) -> View:
    if view.page == RESULTS:
        return replace(view, number=view.number - 1)
    if view.detail:
        return replace(view, detail="")
    return replace(view, page=RESULTS, asin="", chosen={})


def money(product: Product) -> str:
    """Return a product's price as the shop shows it."""
    return f"${product.price:,.2f}"


def text(catalogue: Catalogue, view: View) -> str:
    """Return the page as text: clickable parts in square brackets."""
    if view.page == RESULTS:
        return _results_text(catalogue, view)
    if view.page == ITEM:
        return _item_text(catalogue.by_asin[view.asin], view)
    return "[search]" if view.page == SEARCH else f"You bought {catalogue.by_asin[view.asin].title}."


def heading(catalogue: Catalogue, view: View) -> str:
    """Return the line above the results of a search."""
    total = len(catalogue.search(view.query))
    last = max(1, -(-total // PAGE_SIZE))
    return f"Results for {view.query!r}: page {view.number + 1} of {last}, {total} products"


def facts(product: Product) -> tuple[str, str]:
    """Return the lines below the title of a product."""
    is_rated = product.rating == product.rating
    return f"Price: {money(product)}", f"Rating: {product.rating if is_rated else 'nobody has rated it'}"


def detail_lines(product: Product, detail: str) -> list[str]:
    """Return the lines of one of the :data:`DETAILS` of a product."""
    if detail == "description":
        return [product.description or "There is no description."]
    if detail == "features":
        return [f"- {bullet}" for bullet in product.bullets] or ["There are no features."]
    return [f"- {review}" for review in product.reviews] or ["There are no reviews."]


def _results_text(catalogue: Catalogue, view: View) -> str:
    lines = [heading(catalogue, view)]
    lines += [f"[{product.asin.lower()}] {product.title} {money(product)}" for product in results(catalogue, view)]
    links = clickables(catalogue, view)
    return "\n".join([*lines, " ".join(f"[{link}]" for link in links if link in FIXED)])


def _item_text(product: Product, view: View) -> str:
    if view.detail:
        return "\n".join([product.title, *detail_lines(product, view.detail), f"[{BACK_TO_SEARCH}] [{PREVIOUS}]"])
    lines = [product.title, *facts(product)]
    for name, values in product.options.items():
        marked = (f"[{value}]{' (chosen)' if view.chosen.get(name) == value else ''}" for value in values)
        lines.append(f"{name}: {' '.join(marked)}")
    links = (*DETAILS, BUY, BACK_TO_SEARCH, PREVIOUS)
    return "\n".join([*lines, " ".join(f"[{link}]" for link in links)])
