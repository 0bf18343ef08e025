"""Bargaining by alternating offers (Rubinstein 1982) as GLEE sets it up: payoffs, measures and perfect play.

Rounds are counted from 1. The pie and all shares are whole numbers; discounts are taken as the decimal fractions that
they are written as, so that perfect play is exact.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from turngym.arithmetic import float_sum


class Plan(NamedTuple):
    """Play of perfect players in one round.

    Args:
        keep: Share that the proposer asks for itself.
        accepts_from: The smallest share that the other seat accepts.
    """

    keep: int
    accepts_from: int


def utilities(first_share: float, round_number: int, discounts: tuple[float, float]) -> tuple[float, float]:
    """Return what an agreement is worth to both seats.

        U_0 = p * delta_0 ** (t - 1),    U_1 = (1 - p) * delta_1 ** (t - 1)

    Args:
        first_share: ``p``, the share of seat 0 in the pie, in [0, 1].
        round_number: ``t``, the round of the agreement.
        discounts: Discount of a gain per round, for each seat.

    >>> [round(u, 4) for u in utilities(0.5, 2, (0.9, 0.8))]
    [0.45, 0.4]
    """
    late = round_number - 1
    return first_share * discounts[0] ** late, (1 - first_share) * discounts[1] ** late


def efficiency(gains: tuple[float, float]) -> float:
    """Return the sum of what both seats got: 1 where the pie is divided at once, 0 where it never is."""
    return float_sum(gains)


def fairness(first_share: float) -> float:
    """Return 1 for equal shares and 0 where one seat takes all: ``1 - 4 * (p - 1/2) ** 2``.

    >>> fairness(0.5), fairness(1.0)
    (1.0, 0.0)
    """
    return 1 - 4 * (first_share - 0.5) ** 2


def endless_share(own: float, other: float) -> float:
    """Return the proposer's share in the equilibrium without a last round: ``(1 - other) / (1 - own * other)``.

    Where nobody loses by waiting every division is an equilibrium; then it is one half.

    Args:
        own: The proposer's discount, in [0, 1].
        other: The other seat's.

    >>> round(endless_share(0.9, 0.9), 3), round(endless_share(0.9, 0.8), 3), endless_share(1, 1)
    (0.526, 0.714, 0.5)
    """
    return 0.5 if own == other == 1 else (1 - other) / (1 - own * other)


@lru_cache(maxsize=512)
def perfect_plans(
    pie: int, discounts: tuple[float, float], max_rounds: int, step: int = 1, first: int = 0
) -> tuple[Plan, ...]:
    """Return what subgame-perfect players do in every round, by backward induction over whole shares.

    In the last round the other seat accepts anything. Before, it accepts what is worth no less than what it gets from
    the next round on, and the proposer asks for the most that is accepted. As no waiting makes the pie larger, that
    is never worse for the proposer than to be refused; where a step is too coarse for that, it asks for everything.

    Args:
        pie: Amount to divide.
        discounts: Of the seats 0 and 1.
        max_rounds: The last round.
        step: Shares are multiples of it; it divides the pie.
        first: The seat that proposes in round 1.

    Returns:
        A plan for every round, the first round first.

    >>> perfect_plans(100, (0.9, 0.9), 2)
    (Plan(keep=10, accepts_from=90), Plan(keep=100, accepts_from=0))
    """
    delta = tuple(Fraction(str(discount)) for discount in discounts)
    plans: list[Plan] = []
    after = [Fraction(0), Fraction(0)]  # what each seat gets from the next round on, in the money of this round
    for round_number in range(max_rounds, 0, -1):
        proposer = (first + round_number - 1) % 2
        other = 1 - proposer
        accepts_from = -(-after[other] // step) * step
        keep = pie - int(accepts_from)
        if keep >= after[proposer]:
            now = {proposer: Fraction(keep), other: Fraction(accepts_from)}
        else:
            keep, now = pie, {proposer: after[proposer], other: after[other]}
        plans.append(Plan(keep, int(accepts_from)))
        after = [now[seat] * delta[seat] for seat in (0, 1)]
    return tuple(reversed(plans))


def endless_plan(pie: int, own: float, other: float, is_proposer: bool, step: int = 1) -> Plan:
    """Return what a seat does that knows no last round: the equilibrium without one, rounded to whole shares.

    Args:
        pie: Amount to divide.
        own: The discount of the seat that asks for the plan.
        other: The other seat's.
        is_proposer: Whether that seat proposes.
        step: Shares are multiples of it.

    >>> endless_plan(100, 0.9, 0.8, is_proposer=True)
    Plan(keep=71, accepts_from=29)
    """
    mine, theirs = (own, other) if is_proposer else (other, own)
    keep = int(pie * endless_share(mine, theirs) / step + 1e-9) * step
    return Plan(keep, pie - keep)
