"""Kuhn poker (Kuhn 1950): three cards, one bet; its tree and its equilibria.

An information set is written as the card and the actions so far, such as ``"K check bet"``. A policy maps information
sets to probabilities of actions; the twelve of them belong to two seats of six.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError

CARDS = ("J", "Q", "K")
"""The deck, the lowest card first."""
DEALS: tuple[tuple[str, str], ...] = tuple(permutations(CARDS, 2))
"""Cards of the first and the second seat, all equally likely."""
Policy = Mapping[str, Mapping[str, float]]
"""Information set -> action -> probability."""

_LEGAL = {
    (): ("check", "bet"),
    ("check",): ("check", "bet"),
    ("bet",): ("fold", "call"),
    ("check", "bet"): ("fold", "call"),
}


def legal(history: tuple[str, ...]) -> tuple[str, ...]:
    """Return the legal actions after some actions, none where the hand is over.

    >>> legal(("check", "bet"))
    ('fold', 'call')
    """
    return _LEGAL.get(history, ())


def information_set(card: str, history: tuple[str, ...]) -> str:
    """Return the name of an information set.

    >>> information_set("Q", ("bet",))
    'Q bet'
    """
    return " ".join((card, *history))


def information_sets() -> dict[str, int]:
    """Return information set -> seat, first the six of the first seat."""
    ordered = sorted(_LEGAL, key=lambda history: (len(history) % 2, len(history), history))
    return {information_set(card, history): len(history) % 2 for history in ordered for card in CARDS}


def winnings(first: str, second: str, history: tuple[str, ...]) -> int:
    """Return what the first seat wins in a hand that is over.

    >>> winnings("K", "Q", ("bet", "call")), winnings("K", "Q", ("check", "bet", "fold"))
    (2, -1)
    """
    if history[-1] == "fold":
        return 1 if len(history) == 2 else -1
    stake = 2 if history[-1] == "call" else 1
    return stake if CARDS.index(first) > CARDS.index(second) else -stake


def check_policy(policy: Policy) -> None:
    """Raise unless a policy has a distribution over the legal actions of every information set.

    Raises:
        ConfigError: It has not.
    """
    for history, card in product(_LEGAL, CARDS):
        name = information_set(card, history)
        chances = policy.get(name)
        if chances is None or set(chances) - set(_LEGAL[history]):
            raise ConfigError(f"a policy of kuhn_poker needs {name!r} -> probabilities of {_LEGAL[history]}.")
        if not all(0 <= chance <= 1 for chance in chances.values()) or abs(float_sum(chances.values()) - 1) > 1e-6:
            raise ConfigError(f"the probabilities of {name!r} must add up to 1, got {dict(chances)}.")


def equilibrium(alpha: float = 1 / 3) -> dict[str, dict[str, float]]:
    """Return the equilibrium in which the first seat bets the jack with probability ``alpha``.

    The second seat's part is the same for every ``alpha``.

    Args:
        alpha: In [0, 1/3].

    Raises:
        ConfigError: ``alpha`` is outside.

    >>> equilibrium(0.25)["K"]["bet"]
    0.75
    """
    if not 0 <= alpha <= 1 / 3:
        raise ConfigError(f"alpha of the equilibria of kuhn_poker must be in [0, 1/3], got {alpha!r}.")
    third = 1 / 3
    active = {
        (): (alpha, 0.0, min(1.0, 3 * alpha)),
        ("check", "bet"): (0.0, alpha + third, 1.0),
        ("check",): (third, 0.0, 1.0),
        ("bet",): (0.0, third, 1.0),
    }
    return {
        information_set(card, history): dict(zip(_LEGAL[history], (1 - chance, chance), strict=True))
        for history, chances in active.items()
        for card, chance in zip(CARDS, chances, strict=True)
    }


def uniform() -> dict[str, dict[str, float]]:
    """Return the policy that plays every legal action with the same probability."""
    return {information_set(card, history): dict.fromkeys(_LEGAL[history], 0.5) for history in _LEGAL for card in CARDS}
