"""Hands of cards for the game of points: what cards count, which deals have a solution, how a hand is shown."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from turngym.envs.textgames.ez_points.solver import Hand, is_solvable
from turngym.seeding import stream

RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")


def card_value(rank: int, faces: str) -> int:
    """Return what a card counts; ranks go from 1, the ace, to 13, the king.

    >>> card_value(13, "ten"), card_value(13, "rank"), card_value(1, "ten")
    (10, 13, 1)
    """
    return min(rank, 10) if faces == "ten" else rank


@lru_cache
def solvable_deals(cards: int, target: int, operators: str, faces: str) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of every deal that has a solution, in every order.

    >>> len(solvable_deals(2, 12, "+*", "rank")), solvable_deals(2, 24, "+*", "rank")[:2]
    (17, ((2, 12), (3, 8)))
    """
    deals = product(range(1, 14), repeat=cards)
    hands = ((ranks, tuple(sorted([card_value(rank, faces) for rank in ranks]))) for ranks in deals)
    return tuple([ranks for ranks, hand in hands if is_solvable(hand, target, operators)])


@lru_cache(maxsize=4096)
def shown_as(hand: Hand, faces: str) -> tuple[int, ...]:
    """Return the ranks, in the order in which a hand of values is always dealt.

    >>> shown_as((4, 7, 8, 10), "ten")
    (12, 4, 7, 8)
    """
    generator = stream("points", faces, *hand)
    ranks = [int(generator.integers(10, 14)) if faces == "ten" and value == 10 else value for value in hand]
    return tuple([ranks[index] for index in generator.permutation(len(ranks))])


def names(ranks: tuple[int, ...]) -> str:
    """Return cards as text.

    >>> names((1, 10, 13))
    'A, 10, K'
    """
    return ", ".join([RANKS[rank - 1] for rank in ranks])


@lru_cache
def two_card_formulas(left: Hand, operators: str) -> tuple[str, ...]:
    """Return every formula of a sorted hand of two values.

    >>> two_card_formulas((4, 8), "+*")
    ('4 + 8', '4 * 8', '8 + 4', '8 * 4')
    """
    pairs = sorted({left, left[::-1]})
    return tuple([f"{one} {operator} {other}" for one, other in pairs for operator in operators])
