"""Games of one simultaneous choice as tables of payoffs, and their equilibria."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

Payoffs = Mapping[tuple[str, str], tuple[float, float]]
"""Payoffs of both seats by their actions."""


def symmetric(actions: tuple[str, ...], own: Mapping[tuple[str, str], float]) -> Payoffs:
    """Return the payoffs of a game in which both seats are in the same position.

    Args:
        actions: The actions, the same for both.
        own: Payoff of a seat by its own action and the other's.

    >>> symmetric(("a", "b"), {("a", "a"): 1, ("a", "b"): 0, ("b", "a"): 2, ("b", "b"): 0})["a", "b"]
    (0, 2)
    """
    return {(one, other): (own[one, other], own[other, one]) for one, other in product(actions, actions)}


def best_responses(payoffs: Payoffs, seat: int, other_action: str) -> tuple[str, ...]:
    """Return the actions of a seat that pay most against an action of the other seat.

    >>> best_responses(PRISONERS_DILEMMA, 0, "cooperate")
    ('defect',)
    """
    gains = {pair[seat]: paid[seat] for pair, paid in payoffs.items() if pair[1 - seat] == other_action}
    return tuple([action for action, gain in gains.items() if gain == max(gains.values())])


def pure_equilibria(payoffs: Payoffs) -> tuple[tuple[str, str], ...]:
    """Return the pairs of actions from which no seat alone gains by leaving.

    >>> pure_equilibria(STAG_HUNT)
    (('stag', 'stag'), ('hare', 'hare'))
    """
    return tuple(
        [
            pair
            for pair in payoffs
            if all(pair[seat] in best_responses(payoffs, seat, pair[1 - seat]) for seat in (0, 1))
        ]
    )


def mixed_equilibrium(payoffs: Payoffs) -> tuple[float, float] | None:
    """Return the probabilities of the first action at which each seat leaves the other without a preference.

    Args:
        payoffs: Of a game of two actions.

    Returns:
        The probability of seat 0 and that of seat 1; None if there is no such pair strictly between 0 and 1.

    >>> mixed_equilibrium(MATCHING_PENNIES), mixed_equilibrium(PRISONERS_DILEMMA)
    ((0.5, 0.5), None)
    """
    first, second = dict.fromkeys(pair[0] for pair in payoffs)
    found = []
    for mixer in (0, 1):
        other = 1 - mixer
        # Paid to the other seat for (the mixer's action, its own action).
        paid = {(pair[mixer], pair[other]): gains[other] for pair, gains in payoffs.items()}
        by_first = paid[first, first] - paid[first, second]
        by_second = paid[second, first] - paid[second, second]
        if by_first * by_second >= 0:
            return None
        found.append(by_second / (by_second - by_first))
    return found[0], found[1]


PRISONERS_DILEMMA = symmetric(
    ("cooperate", "defect"),
    {
        ("cooperate", "cooperate"): 3,
        ("cooperate", "defect"): 0,
        ("defect", "cooperate"): 5,
        ("defect", "defect"): 1,
    },
)
STAG_HUNT = symmetric(
    ("stag", "hare"), {("stag", "stag"): 4, ("stag", "hare"): 0, ("hare", "stag"): 3, ("hare", "hare"): 2}
)
CHICKEN = symmetric(
    ("swerve", "straight"),
    {
        ("swerve", "swerve"): 3,
        ("swerve", "straight"): 1,
        ("straight", "swerve"): 4,
        ("straight", "straight"): 0,
    },
)
MATCHING_PENNIES: Payoffs = {
    (one, other): (1, -1) if one == other else (-1, 1) for one, other in product(("heads", "tails"), repeat=2)
}
BATTLE_OF_THE_SEXES: Payoffs = {
    ("opera", "opera"): (3, 2),
    ("opera", "football"): (0, 0),
    ("football", "opera"): (0, 0),
    ("football", "football"): (2, 3),
}
_BEATS = {("rock", "scissors"), ("paper", "rock"), ("scissors", "paper")}
ROCK_PAPER_SCISSORS = symmetric(
    ("rock", "paper", "scissors"),
    {
        (one, other): ((one, other) in _BEATS) - ((other, one) in _BEATS)
        for one, other in product(("rock", "paper", "scissors"), repeat=2)
    },
)
