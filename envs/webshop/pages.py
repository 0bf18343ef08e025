"""The pages of the shop: what each shows, and what can be clicked on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.product import Product

PAGE_SIZE = 10
SEARCH, RESULTS, ITEM, BOUGHT = "search", "results", "item", "bought"
BACK_TO_SEARCH, NEXT, PREVIOUS, BUY = "back to search", "next >", "< prev", "buy now"
DETAILS = ("description", "features", "reviews")


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
        return (BACK_TO_SEARCH, PREVIOUS, *DETAILS, BUY, *(value for value in values if value not in _FIXED))
    return ()


_FIXED = frozenset((BACK_TO_SEARCH, PREVIOUS, NEXT, BUY, *DETAILS))


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


def _results_text(catalogue: Catalogue, view: View) -> str:
    total = len(catalogue.search(view.query))
    pages = max(1, -(-total // PAGE_SIZE))
    lines = [f"Results for {view.query!r}: page {view.number + 1} of {pages}, {total} products"]
    lines += [f"[{product.asin.lower()}] {product.title} {money(product)}" for product in results(catalogue, view)]
    links = clickables(catalogue, view)
    return "\n".join([*lines, " ".join(f"[{link}]" for link in links if link in _FIXED)])


def _item_text(product: Product, view: View) -> str:
    if view.detail:
        return "\n".join([product.title, *_detail(product, view.detail), f"[{BACK_TO_SEARCH}] [{PREVIOUS}]"])
    lines = [product.title, f"Price: {money(product)}"]
    lines += ["Rating: nobody has rated it" if product.rating != product.rating else f"Rating: {product.rating}"]
    for name, values in product.options.items():
        marked = (f"[{value}]{' (chosen)' if view.chosen.get(name) == value else ''}" for value in values)
        lines.append(f"{name}: {' '.join(marked)}")
    links = (*DETAILS, BUY, BACK_TO_SEARCH, PREVIOUS)
    return "\n".join([*lines, " ".join(f"[{link}]" for link in links)])


def _detail(product: Product, detail: str) -> list[str]:
    if detail == "description":
        return [product.description or "There is no description."]
    if detail == "features":
        return [f"- {bullet}" for bullet in product.bullets] or ["There are no features."]
    return [f"- {review}" for review in product.reviews] or ["There are no reviews."]
