"""Kuhn poker (Kuhn 1950): three cards, one bet; its tree, its equilibria and the exploitability of any policy.

An information set is written as the card and the actions so far, such as ``"K check bet"``. A policy maps information
sets to probabilities of actions; the twelve of them belong to two seats of six.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError

CARDS = ("J", "Q", "K")
"""The deck, the lowest card first."""
DEALS: tuple[tuple[str, str], ...] = tuple(permutations(CARDS, 2))
"""Cards of the first and the second seat, all equally likely."""
GAME_VALUE = -1 / 18
"""Winnings of the first seat per hand if both play an equilibrium."""

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


def value(first: Policy, second: Policy) -> float:
    """Return what the first seat wins per hand in the mean.

    Args:
        first: The first seat's policy; only its own information sets are looked up.
        second: The second seat's.

    >>> round(value(equilibrium(0.1), equilibrium()), 9) == round(GAME_VALUE, 9)
    True
    """
    return float_sum(chips * chance for chips, chance in outcomes(first, second).items())


def outcomes(first: Policy, second: Policy) -> dict[int, float]:
    """Return the chips that the first seat may win in a hand, each with its exact probability.

    Args:
        first: The first seat's policy; only its own information sets are looked up.
        second: The second seat's.

    >>> {chips: round(chance, 3) for chips, chance in sorted(outcomes(uniform(), uniform()).items())}
    {-2: 0.188, -1: 0.25, 1: 0.375, 2: 0.188}
    """
    found: dict[int, float] = {}
    for deal in DEALS:
        for history, chance in _ends(deal, (), 1 / len(DEALS), (first, second)):
            chips = winnings(*deal, history)
            found[chips] = found.get(chips, 0.0) + chance
    return found


def _ends(
    deal: tuple[str, str], history: tuple[str, ...], chance: float, policies: tuple[Policy, Policy]
) -> Iterator[tuple[tuple[str, ...], float]]:
    if history not in _LEGAL:
        yield history, chance
        return
    seat = len(history) % 2
    for action, share in policies[seat][information_set(deal[seat], history)].items():
        if share:
            yield from _ends(deal, (*history, action), chance * share, policies)


def best_response(policy: Policy, seat: int) -> tuple[float, dict[str, str]]:
    """Return what a seat wins per hand if it answers a known policy as well as it can, and how it does so.

    Args:
        policy: Player of the other seat.
        seat: The seat that answers: 0 acts first.

    Returns:
        Its mean winnings, and its action for each of its six information sets.
    """
    choices: dict[str, str] = {}
    total = 0.0
    for card in CARDS:
        others = {other: 1 / len(DEALS) for other in CARDS if other != card}
        total += _answer(card, others, (), policy, seat, choices)
    return total, choices


def _answer(
    card: str, others: dict[str, float], history: tuple[str, ...], policy: Policy, seat: int, choices: dict[str, str]
) -> float:
    """Return the winnings from here, weighted by the probability that the other holds each card and plays to here."""
    if history not in _LEGAL:
        sign = 1 - 2 * seat
        hands = {other: (card, other) if seat == 0 else (other, card) for other in others}
        return float_sum(weight * sign * winnings(*hands[other], history) for other, weight in others.items())
    if len(history) % 2 == seat:
        values = {a: _answer(card, others, (*history, a), policy, seat, choices) for a in _LEGAL[history]}
        best = max(values, key=values.__getitem__)
        choices[information_set(card, history)] = best
        return values[best]
    return float_sum(
        _answer(card, reached, (*history, action), policy, seat, choices)
        for action, reached in _others_after(others, history, policy)
    )


def _others_after(
    others: dict[str, float], history: tuple[str, ...], policy: Policy
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each action of the other seat with the weights of its cards after that action."""
    for action in _LEGAL[history]:
        yield (
            action,
            {o: weight * policy[information_set(o, history)].get(action, 0.0) for o, weight in others.items()},
        )


def exploitability(policy: Policy) -> float:
    """Return how much a best answer wins against a policy per hand, in the mean over both seats.

    Zero for an equilibrium alone. It is half of the sum over both seats of what a best response gains over the
    policy playing itself, as OpenSpiel counts it.

    Args:
        policy: Probabilities for all twelve information sets.

    Raises:
        ConfigError: The policy lacks an information set, or one of its distributions does not add up to 1.

    >>> exploitability(equilibrium(0.25)) < 1e-9, round(exploitability(uniform()), 6)
    (True, 0.458333)
    """
    check_policy(policy)
    return (best_response(policy, 0)[0] + best_response(policy, 1)[0]) / 2
