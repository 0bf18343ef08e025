"""The best play of Blackjack for the cards that the player knows: exact expectations, no simulation.

With endless cards every card is a fresh draw, 10 with probability 4/13. With one deck what has been seen is missing.
A player's chance to win never depends on the order in which unseen cards lie, so hidden and coming cards are one pool.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from turngym.arithmetic import float_sum

Pool: TypeAlias = tuple[int, ...]
"""How many unseen cards there are of each value: aces first, tens last; empty for endless cards."""
ENDLESS: Pool = ()
_DECK: Pool = (4,) * 9 + (16,)
_SHARES = (1 / 13,) * 9 + (4 / 13,)


class Stakes(NamedTuple):
    """Value of the outcomes for the player to optimise."""

    win: float = 1.0
    draw: float = 0.0
    loss: float = 0.0


WINS = Stakes()
"""Counts wins alone, so an expectation is a probability to win."""
MONEY = Stakes(1.0, 0.0, -1.0)
"""One unit is won or lost, as tables of basic strategy have it."""


def deck_without(cards: tuple[int, ...]) -> Pool:
    """Return one deck without cards that have been seen, given by value with the ace as 1.

    >>> deck_without((1, 10, 10))
    (3, 4, 4, 4, 4, 4, 4, 4, 4, 14)
    """
    pool = list(_DECK)
    for value in cards:
        pool[value - 1] -= 1
    return tuple(pool)


def draws(pool: Pool) -> list[tuple[int, float, Pool]]:
    """Return each value that the next card can have, its probability, and the pool after it."""
    if not pool:
        return [(index + 1, share, pool) for index, share in enumerate(_SHARES)]
    size = sum(pool)
    return [
        (index + 1, count / size, (*pool[:index], count - 1, *pool[index + 1 :]))
        for index, count in enumerate(pool)
        if count
    ]


def _grown(count: int, has_ace: bool, value: int) -> tuple[int, bool]:
    return count + value, has_ace or value == 1


def _best(count: int, has_ace: bool) -> int:
    """Return the total of a hand whose aces count 1 in ``count``."""
    return count + 10 if has_ace and count <= 11 else count


@lru_cache(maxsize=200_000)
def dealer_chances(count: int, has_ace: bool, cards: int, pool: Pool) -> tuple[float, ...]:
    """Return the probability of each end of the dealer's hand: 17 to 21, more than 21, a natural.

    Args:
        count: Sum of the dealer's cards, aces as 1.
        has_ace: Whether there is an ace among them.
        cards: How many there are, 3 standing for any number above 2.
        pool: Unseen cards.

    >>> [round(chance, 4) for chance in dealer_chances(10, False, 1, ENDLESS)]
    [0.1114, 0.1114, 0.1114, 0.3422, 0.0345, 0.2121, 0.0769]
    """
    best = _best(count, has_ace)
    if best >= 17:
        index = 5 if best > 21 else 6 if best == 21 and cards == 2 else best - 17
        return tuple([float(place == index) for place in range(7)])
    chances = [0.0] * 7
    for value, share, rest in draws(pool):
        for index, chance in enumerate(dealer_chances(*_grown(count, has_ace, value), min(cards + 1, 3), rest)):
            chances[index] += share * chance
    return tuple(chances)


def _stand_value(count: int, has_ace: bool, is_natural: bool, shown: int, pool: Pool, stakes: Stakes) -> float:
    """Return the expectation of standing against a dealer who shows one card.

    Args:
        count: Sum of the player's cards, aces as 1, at most 21.
        has_ace: Whether there is an ace among them.
        is_natural: Whether they are a natural.
        shown: The dealer's face-up card.
        pool: Unseen cards, the dealer's hidden one among them.
        stakes: Value of the outcomes.
    """
    chances = dealer_chances(shown, shown == 1, 1, pool)
    if is_natural:
        return stakes.win * (1 - chances[6]) + stakes.draw * chances[6]
    mine = _best(count, has_ace)
    lower = float_sum(chances[: max(0, mine - 17)]) + chances[5]
    equal = chances[mine - 17] if mine >= 17 else 0.0
    return stakes.win * lower + stakes.draw * equal + stakes.loss * (1 - lower - equal)


@lru_cache(maxsize=200_000)
def play_value(count: int, has_ace: bool, shown: int, pool: Pool, stakes: Stakes) -> tuple[float, float]:
    """Return the expectations of standing, and of taking a card and playing best after it; for no natural.

    Where so many cards exceed 21 that taking one cannot be better, the second number is an upper bound.

    >>> [round(value, 3) for value in play_value(16, False, 10, ENDLESS, MONEY)]
    [-0.576, -0.575]
    """
    stand = _stand_value(count, has_ace, False, shown, pool, stakes)
    coming = draws(pool)
    too_much = float_sum([share for value, share, _ in coming if count + value > 21])
    if (bound := stakes.win * (1 - too_much) + stakes.loss * too_much) <= stand:
        return stand, bound
    hit = stakes.loss * too_much
    for value, share, rest in coming:
        if count + value <= 21:
            hit += share * max(play_value(*_grown(count, has_ace, value), shown, rest, stakes))
    return stand, hit


def should_hit(cards: tuple[int, ...], shown: int, pool: Pool, stakes: Stakes = WINS) -> bool:
    """Return whether one more card is better than standing.

    Args:
        cards: The values of the player's cards, aces as 1.
        shown: The value of the dealer's face-up card.
        pool: Unseen cards.
        stakes: Value of the outcomes.

    >>> should_hit((10, 6), 7, ENDLESS), should_hit((10, 6), 6, ENDLESS), should_hit((1, 6), 6, ENDLESS)
    (True, False, True)
    """
    count, has_ace = sum(cards), 1 in cards
    if _best(count, has_ace) == 21:
        return False
    stand, hit = play_value(count, has_ace, shown, pool, stakes)
    return hit > stand


def game_value(stakes: Stakes) -> float:
    """Return the expectation of a whole game with endless cards and best play.

    >>> round(game_value(WINS), 3)
    0.435
    """
    value = 0.0
    for one, first, _ in draws(ENDLESS):
        for other, second, _ in draws(ENDLESS):
            for shown, third, _ in draws(ENDLESS):
                if {one, other} == {1, 10}:
                    best = _stand_value(11, True, True, shown, ENDLESS, stakes)
                else:
                    best = max(play_value(one + other, 1 in (one, other), shown, ENDLESS, stakes))
                value += first * second * third * best
    return value
