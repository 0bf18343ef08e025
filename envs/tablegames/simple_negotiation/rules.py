"""Simple negotiation: goods, what they are worth to each seat, and offers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

BASE_VALUES = {"wheat": 5, "wood": 10, "sheep": 15, "brick": 25, "ore": 40}
"""The five goods of the larger game with the values around which those of a seat are drawn."""
TWO_GOODS = {"wood": (5, 15), "gold": (15, 5)}
"""The two goods of the smaller game with their values for seats 0 and 1."""
FEWEST, MOST = 5, 25
"""How many of each good a seat may start with."""

_PAIR = re.compile(r"([0-9]{1,4}) ?x? ?([a-z]+)")
_SEPARATOR = re.compile(r" ?(?:,|;|\+|&| and ) ?")
_OFFER = re.compile(r"(?:i )?(?:offer|trade|give)?:? ?([^->]{1,80}?) ?(?:->|=>|→| for ) ?([^->]{1,80})")


class Offer(NamedTuple):
    """Trade offer of a seat: numbers of each good given and wanted.

    Args:
        gives: [goods] counts.
        wants: [goods] counts.
    """

    gives: tuple[int, ...]
    wants: tuple[int, ...]


def drawn_values(generator: np.random.Generator) -> tuple[int, ...]:
    """Return a seat's values of the five goods: the base value plus or minus a fifth, from 5 to 40."""
    values = []
    for base in BASE_VALUES.values():
        spread = base // 5
        values.append(int(generator.integers(max(base - spread, 5), min(base + spread, 40) + 1)))
    return tuple(values)


def worth(counts: Sequence[int], values: Sequence[int]) -> int:
    """Return what some goods are worth."""
    return sum(count * value for count, value in zip(counts, values, strict=True))


def gain_of(offer: Offer, values: Sequence[int], is_proposer: bool) -> int:
    """Return what a trade changes in the worth of a seat's goods.

    >>> gain_of(Offer((1, 0), (0, 2)), (5, 15), is_proposer=True)
    25
    """
    gain = worth(offer.wants, values) - worth(offer.gives, values)
    return gain if is_proposer else -gain


def covers(counts: Sequence[int], needed: Sequence[int]) -> bool:
    """Return whether there are at least as many of every good as needed."""
    return all(have >= need for have, need in zip(counts, needed, strict=True))


def best_joint_gain(counts: Sequence[Sequence[int]], values: Sequence[Sequence[int]]) -> int:
    """Return the most that both seats together can gain: every good goes to whom it is worth more.

    >>> best_joint_gain([(10, 10), (10, 10)], [(5, 15), (15, 5)])
    200
    """
    gain = 0
    for good, (first, second) in enumerate(zip(*values, strict=True)):
        moved = counts[1][good] if first > second else counts[0][good]
        gain += moved * abs(first - second)
    return gain


@lru_cache(maxsize=2048)
def small_offers(goods: tuple[str, ...], most: tuple[int, ...], wanted: int = 3) -> tuple[str, ...]:
    """Return the canonical texts of all offers of one good for another.

    Args:
        goods: Their names.
        most: [goods] how many are given at most.
        wanted: How many are wanted at most.

    >>> small_offers(("wood", "gold"), (1, 0), 2)
    ('offer 1 wood -> 1 gold', 'offer 1 wood -> 2 gold')
    """
    return tuple(
        [
            f"offer {give} {mine} -> {want} {other}"
            for mine, count in zip(goods, most, strict=True)
            for other in goods
            if other != mine
            for give in range(1, count + 1)
            for want in range(1, wanted + 1)
        ]
    )


def offer_text(offer: Offer, goods: Sequence[str]) -> str:
    """Return the canonical text of an offer.

    >>> offer_text(Offer((2, 0), (0, 1)), ("wood", "gold"))
    'offer 2 wood -> 1 gold'
    """
    return f"offer {counted(offer.gives, goods)} -> {counted(offer.wants, goods)}"


def counted(counts: Sequence[int], goods: Sequence[str]) -> str:
    """Return goods with their counts, those of which there are none left out.

    >>> counted((2, 0, 1), ("wood", "gold", "ore"))
    '2 wood, 1 ore'
    """
    return ", ".join([f"{count} {good}" for count, good in zip(counts, goods, strict=True) if count])


def parsed_offer(text: str, goods: Sequence[str]) -> Offer | None:
    """Return the offer that a text in lower case is, None if it is none.

    >>> parsed_offer("offer: 2 woods and 1 wood -> 1 gold", ("wood", "gold"))
    Offer(gives=(3, 0), wants=(0, 1))
    """
    match = _OFFER.fullmatch(text)
    if match is None:
        return None
    gives, wants = _counts(match[1], goods), _counts(match[2], goods)
    return None if gives is None or wants is None else Offer(gives, wants)


def _counts(text: str, goods: Sequence[str]) -> tuple[int, ...] | None:
    """Return the counts in a list of goods, None if a part is not a good with a count of at least 1."""
    names: Mapping[str, int] = {
        form: index for index, good in enumerate(goods) for form in (good, f"{good}s", f"{good}es")
    }
    counts = [0] * len(goods)
    for part in _SEPARATOR.split(text.strip()):
        match = _PAIR.fullmatch(part)
        if match is None or match[2] not in names or not int(match[1]):
            return None
        counts[names[match[2]]] += int(match[1])
    return tuple(counts)
