"""Persuasion as GLEE sets it up (arXiv 2410.05254): measures, and what recommending bad products is worth.

Worths are multiples of the price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_AGAINST = re.compile(
    r"\b(?:not|never|no|bad|low|poor|avoid|cannot|(?:do|does|is|ca|wo|would|should)n't)\b", re.IGNORECASE
)
_IN_FAVOUR = re.compile(r"\b(?:not bad|no doubt)\b", re.IGNORECASE)
_TOLERANCE = 1e-9


class Round(NamedTuple):
    """A round that is over.

    Args:
        message: What the seller said: ``"yes"``, ``"no"`` or text.
        is_good: Quality of the product.
        is_sold: Whether it was bought.
    """

    message: str
    is_good: bool
    is_sold: bool


def recommends(message: str) -> bool:
    """Return whether a message recommends a product: ``"yes"``, or text without a word against it.

    This is a heuristic: "not bad" and "no doubt" are not words against it, and irony is not understood.

    >>> recommends("yes"), recommends("Not bad, buy it."), recommends("I do not recommend it.")
    (True, True, False)
    """
    return _AGAINST.search(_IN_FAVOUR.sub("", message.replace("’", "'"))) is None


def is_worth_it(belief: float, high: float, low: float) -> bool:
    """Return whether a product that is good with some probability is worth its price at least.

    >>> is_worth_it(1 / 3, 3, 0), is_worth_it(1 / 3, 2, 0)
    (True, False)
    """
    return belief * high + (1 - belief) * low >= 1 - _TOLERANCE


def commitment_rate(prior: float, high: float, low: float) -> float:
    """Return the rate of recommending bad products that is best for a seller whom the buyer knows to keep to it.

    A buyer that believes the recommendation is indifferent: ``p (v - 1) = (1 - p) q (1 - c)``. The rate is 1 where the
    buyer buys by the prior alone.

    >>> round(commitment_rate(1 / 3, 2, 0), 6), commitment_rate(0.5, 1.25, 0), commitment_rate(0.5, 2, 0)
    (0.5, 0.25, 1.0)
    """
    if prior == 1 or low >= 1 or is_worth_it(prior, high, low):
        return 1.0
    return max(0.0, prior * (high - 1) / ((1 - prior) * (1 - low)))


def expected_gains(prior: float, high: float, low: float, rate: float) -> tuple[float, float]:
    """Return the gains of seller and buyer per round if every good product is recommended, and bad ones at a rate.

    The buyer knows the rate and buys what is worth its price at least by Bayes' rule.

    >>> expected_gains(0.5, 1.25, 0, 0.25), expected_gains(0.5, 1.25, 0, 0)
    ((0.625, 0.0), (0.5, 0.125))
    """
    bad = (1 - prior) * rate
    recommended = prior + bad
    seller = buyer = 0.0
    if recommended and is_worth_it(prior / recommended, high, low):
        seller, buyer = recommended, prior * (high - 1) + bad * (low - 1)
    if recommended < 1 and is_worth_it(0.0, high, low):
        seller, buyer = seller + 1 - recommended, buyer + (1 - recommended) * (low - 1)
    return seller, buyer


def measures(rounds: Sequence[Round]) -> dict[str, float]:
    """Return GLEE's efficiency and fairness: the shares of good products sold, and of bad ones not sold.

    >>> measures([Round("yes", is_good, is_sold) for is_good in (True, False) for is_sold in (True, False)])
    {'efficiency': 0.5, 'fairness': 0.5}
    """
    good = [each.is_sold for each in rounds if each.is_good]
    bad = [not each.is_sold for each in rounds if not each.is_good]
    return {
        "efficiency": sum(good) / len(good) if good else 1.0,
        "fairness": sum(bad) / len(bad) if bad else 1.0,
    }
