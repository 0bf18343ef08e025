"""The oracle: the next action to buy the product that a request was made from."""

from __future__ import annotations

from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.html import LONGEST_QUERY
from turngym.envs.webshop.pages import BACK_TO_SEARCH, BUY, NEXT, PAGE_SIZE, PREVIOUS, RESULTS, SEARCH, View
from turngym.envs.webshop.product import Goal, Product


def next_action(catalogue: Catalogue, view: View, goal: Goal, target: Product) -> str:
    """Return the next step towards a product, from anywhere in the shop.

    It searches for the request, or for the product's title where the request does not find it.

    Args:
        catalogue: The shop.
        view: Where the customer is.
        goal: The wish.
        target: The product that it was made from.
    """
    if view.page == SEARCH:
        wish = goal.instruction[:LONGEST_QUERY]
        return f"search[{wish if target in catalogue.search(wish) else target.title[:LONGEST_QUERY]}]"
    if view.page == RESULTS:
        return f"click[{_result_link(catalogue, view, target)}]"
    if view.asin != target.asin.lower() or view.detail:
        return f"click[{PREVIOUS}]"
    missing = [value for name, value in goal.options.items() if view.chosen.get(name) != value]
    return f"click[{missing[0] if missing else BUY}]"


def _result_link(catalogue: Catalogue, view: View, target: Product) -> str:
    found = catalogue.search(view.query)
    if target not in found:
        return BACK_TO_SEARCH
    page = found.index(target) // PAGE_SIZE
    if page == view.number:
        return target.asin.lower()
    return NEXT if page > view.number else PREVIOUS
