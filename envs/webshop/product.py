"""Products of a shop and requests of customers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from turngym.seeding import stream

_NO_PRICE = 100.0
"""Price of products without one."""
_CEILINGS = tuple(float(price) for price in range(10, 1000, 10))
"""The price ceilings that a goal may name."""


@dataclass(frozen=True)
class Product:
    """One product of a catalogue.

    Args:
        asin: Its id.
        title: Its name as pages show it.
        category: Its path of categories, widest first.
        query: The kind of thing that the shop files it under.
        description: Free text.
        bullets: Its features, one sentence each.
        attributes: Properties that goals may ask for; pages do not list them.
        options: Option name -> values to choose from, all in lower case.
        prices: Nothing, the price, or lowest and highest price, in dollars.
        nouns: Nouns of the title, in lower case.
        rating: Stars, nan without ratings.
        reviews: Customer reviews.
    """

    asin: str
    title: str
    category: tuple[str, ...] = ()
    query: str = ""
    description: str = ""
    bullets: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prices: tuple[float, ...] = ()
    nouns: frozenset[str] = frozenset()
    rating: float = float("nan")
    reviews: tuple[str, ...] = ()

    @cached_property
    def price(self) -> float:
        """Its price: sampled once from its range, the same in every episode.

        >>> Product("B01", "Tea", prices=(3.5,)).price, Product("B02", "Cup").price
        (3.5, 100.0)
        """
        if not self.prices:
            return _NO_PRICE
        low, high = min(self.prices), max(self.prices)
        return low if low == high else round(float(stream("webshop price", self.asin).uniform(low, high)), 2)

    @cached_property
    def text(self) -> str:
        """Everything that its pages say, in lower case."""
        return "\n".join((self.title, *self.bullets, self.description)).lower()


@dataclass(frozen=True)
class Goal:
    """Request of the customer; made from one product, and satisfied by any that fits.

    Args:
        asin: The product that it was made from; the agent is not told.
        instruction: Instruction of the customer.
        attributes: Properties asked for.
        options: Option name -> value asked for.
        ceiling: Highest price, in dollars; infinite where none is named.
    """

    asin: str
    instruction: str
    attributes: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    ceiling: float = float("inf")

    @property
    def text(self) -> str:
        """Canonical text of the goal."""
        return f"{self.asin}: {self.instruction}"


def draw_ceiling(generator: np.random.Generator, price: float) -> float:
    """Return the price ceiling of a goal: the larger of two of the next four multiples of ten above the price.

    Infinite where fewer than two are left below 1,000 dollars: then the goal names none.

    >>> draw_ceiling(np.random.default_rng(0), 24.5) in (40.0, 50.0, 60.0)
    True
    >>> draw_ceiling(np.random.default_rng(0), 985.0)
    inf
    """
    above = [ceiling for ceiling in _CEILINGS if ceiling > price][:4]
    if len(above) < 2:
        return float("inf")
    first, second = generator.permutation(len(above))[:2].tolist()
    larger: float = above[max(first, second)]
    return larger
