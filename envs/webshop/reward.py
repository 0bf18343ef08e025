"""The reward of buying: a pure function of product, chosen options and goal.

Source: WebShop, Yao et al. 2022, arXiv 2207.01206.

    reward = type * (attributes found + options found + price kept) / (attributes asked + options asked + 1)

Texts are compared by ``token_set_ratio`` (0 to 100, of the package rapidfuzz) above 85, as in the published code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from turngym.envs.webshop.product import Goal, Product
from turngym.errors import missing_extra

try:
    from rapidfuzz.fuzz import token_set_ratio
    from rapidfuzz.utils import default_process
except ModuleNotFoundError as error:
    raise missing_extra("WebShop", "rapidfuzz", "webshop") from error

_THRESHOLD = 85
_LITTLE_OVERLAP = 0.1
_ENOUGH_OVERLAP = 0.2
COLOURS = (
    "beige",
    "black",
    "blue",
    "bronze",
    "brown",
    "burgundy",
    "charcoal",
    "copper",
    "coral",
    "cream",
    "cyan",
    "emerald",
    "fuchsia",
    "gold",
    "gray",
    "green",
    "grey",
    "indigo",
    "ivory",
    "khaki",
    "lavender",
    "lilac",
    "lime",
    "magenta",
    "maroon",
    "mint",
    "mustard",
    "navy",
    "olive",
    "orange",
    "peach",
    "pink",
    "plum",
    "purple",
    "red",
    "rose",
    "rust",
    "salmon",
    "sand",
    "silver",
    "tan",
    "taupe",
    "teal",
    "turquoise",
    "violet",
    "white",
    "wine",
    "yellow",
)


class Reward(NamedTuple):
    """The reward of a purchase and what it is made of.

    Args:
        total: Between 0 and 1; 1 is success.
        type_factor: 1, 0.5, 0.1 or 0: whether it is the right kind of thing.
        attributes: Share of the attributes asked for that it has, 1 where none are.
        options: Share of the options asked for that were chosen, 1 where none are.
        price: 1 if it costs no more than the ceiling, else 0.
    """

    total: float
    type_factor: float
    attributes: float
    options: float
    price: float


@lru_cache(maxsize=65_536)
def is_similar(first: str, second: str) -> bool:
    """Return whether two texts say the same, word order and extra words on one side aside.

    >>> is_similar("long lasting", "Long-lasting colour"), is_similar("long lasting", "long sleeve")
    (True, False)
    """
    return round(token_set_ratio(first, second, processor=default_process)) > _THRESHOLD


def base_colour(text: str) -> str:
    """Return the first colour word, in the order of the alphabet, that the text contains, else the text.

    >>> base_colour("light blue"), base_colour("xx-large")
    ('blue', 'xx-large')
    """
    return next((colour for colour in COLOURS if colour in text), text)


def _has_attribute(product: Product, attribute: str) -> bool:
    """Return whether a product has an attribute: its own similar one, or the words somewhere on its pages."""
    return any(is_similar(own, attribute) for own in product.attributes) or says(product, attribute)


def says(product: Product, attribute: str) -> bool:
    """Return whether the pages of a product hold the words of an attribute."""
    return attribute.lower() in product.text


def has_option(name: str, value: str, chosen: Iterable[str]) -> bool:
    """Return whether one of the chosen values is what an option asks for.

    Chosen values are first reduced to their base colour. What is asked for is reduced only where the whole value is a
    base colour; else it is compared together with the option's name: this is what the published code does.

    >>> has_option("color", "black", ["jet black"]), has_option("size", "large", ["x-large"])
    (True, False)
    """
    asked = value if value in COLOURS else f"{name} {value}"
    return any(is_similar(base_colour(one), asked) for one in chosen)


def noun_overlap(product: Product, wanted: Product) -> float:
    """Return the share of the wanted title's nouns that the product's title has; 0.2 where it has none."""
    if not wanted.nouns:
        return _ENOUGH_OVERLAP
    return len(product.nouns & wanted.nouns) / len(wanted.nouns)


def type_factor(product: Product, wanted: Product) -> float:
    """Return 1 for the right kind of thing, less for another kind, 0 where the titles share no noun."""
    overlap = noun_overlap(product, wanted)
    if overlap == 0:
        return 0.0
    if overlap < _LITTLE_OVERLAP:
        return 0.1
    shared_categories = len(set(product.category) & set(wanted.category))
    is_same = product.query == wanted.query or shared_categories >= 2 or overlap > _ENOUGH_OVERLAP
    return 1.0 if is_same else 0.5


def reward(product: Product, chosen: Mapping[str, str], goal: Goal, wanted: Product) -> Reward:
    """Return what buying earns.

    Args:
        product: Purchase.
        chosen: Option name -> value chosen.
        goal: What was asked for.
        wanted: The product that the goal was made from.

    >>> tea = Product("B1", "Green tea", attributes=("caffeine free",), prices=(8.0,), nouns=frozenset({"tea"}))
    >>> reward(tea, {}, Goal("B1", "tea without caffeine", ("caffeine free",), {}, 20.0), tea).total
    1.0
    """
    attributes = [_has_attribute(product, attribute) for attribute in goal.attributes]
    return _combine(product, attributes, chosen, goal, type_factor(product, wanted))


def visible_reward(product: Product, chosen: Mapping[str, str], goal: Goal) -> float:
    """Return the reward of buying as estimated from the pages and the customer's request, without the catalogue.

    Attributes count where the pages hold their words; the kind of thing is taken to be right.
    """
    return _combine(product, [says(product, attribute) for attribute in goal.attributes], chosen, goal, 1.0).total


def _combine(product: Product, attributes: list[bool], chosen: Mapping[str, str], goal: Goal, factor: float) -> Reward:
    values = [value.lower() for value in chosen.values()]
    options = [has_option(name, value, values) for name, value in goal.options.items()]
    price = product.price <= goal.ceiling
    total = factor * (sum(attributes) + sum(options) + price) / (len(attributes) + len(options) + 1)
    return Reward(total, factor, _share(attributes), _share(options), float(price))


def _share(found: list[bool]) -> float:
    return sum(found) / len(found) if found else 1.0
