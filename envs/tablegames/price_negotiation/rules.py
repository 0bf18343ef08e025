"""Bilateral trade as GLEE sets it up (arXiv 2410.05254): measures, and the prices of perfect players.

Values and prices are whole numbers of money. Without an agreement both seats trade elsewhere at their own value, which
gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

SELLER, BUYER = 0, 1


class Plan(NamedTuple):
    """Play of a seat in one round.

    Args:
        price: Price that it offers.
        accepts_from: The smallest gain that it accepts, in money.
    """

    price: int
    accepts_from: Fraction


def gain(price: int, value: int, seat: int) -> int:
    """Return what a trade gains a seat, in money.

    >>> gain(100, 80, SELLER), gain(100, 120, BUYER)
    (20, 20)
    """
    return price - value if seat == SELLER else value - price


def efficiency(values: tuple[int, int], is_traded: bool) -> float:
    """Return 1 if the product ended with the seat to which it is worth more, else 0; 1 for equal values.

    >>> efficiency((80, 120), True), efficiency((120, 80), True), efficiency((100, 100), False)
    (1.0, 0.0, 1.0)
    """
    seller, buyer = values
    return float(seller == buyer or is_traded == (buyer > seller))


def fairness(price: int | None, values: tuple[int, int], unit: int) -> float:
    """Return ``1 - 4 * (p - m) ** 2`` for a price and the mean of the values in units; 1 without a trade.

    >>> fairness(100, (80, 120), 100), round(fairness(120, (80, 120), 100), 2), fairness(None, (80, 120), 100)
    (1.0, 0.84, 1.0)
    """
    return 1.0 if price is None else 1 - 4 * ((price - sum(values) / 2) / unit) ** 2


def perfect_plan(seat: int, value: int, others: Sequence[int], now: int, last: int | None, step: int = 1) -> Plan:
    """Return what a perfect player does.

    Waiting costs nothing, so the seat that makes the last offer takes the whole surplus, and the other gets nothing in
    any round. Where the last round is not told every division is an equilibrium; then it is the even one. Where the
    other's value is not known, the plan is the best last offer in every round, and to accept what that is expected to
    gain.

    Args:
        seat: ``SELLER`` or ``BUYER``.
        value: Value of the seat.
        others: Values that the other seat may have, all equally likely; one where it is known.
        now: The round.
        last: The last round, None where it is not told.
        step: Prices are multiples of it.

    >>> perfect_plan(SELLER, 80, [120], 1, 9), perfect_plan(SELLER, 80, [120], 1, 10)
    (Plan(price=120, accepts_from=Fraction(40, 1)), Plan(price=80, accepts_from=Fraction(0, 1)))
    """
    price, expected = best_price(value, others, seat, step)
    if len(others) == 1 and expected:
        if last is None:
            price = middle(seat, value, others, step)
            return Plan(price, Fraction(gain(price, value, seat)))
        if (last - 1) % 2 != seat:
            return Plan(_acceptable(value, seat, step), Fraction(0))
    return Plan(price, expected if now != last else Fraction(0))


def middle(seat: int, value: int, others: Sequence[int], step: int = 1) -> int:
    """Return the price between a seat's value and the mean of the other's, without a loss for the seat.

    >>> middle(SELLER, 80, [120]), middle(SELLER, 150, [80, 120])
    (100, 150)
    """
    price = int((value + Fraction(sum(others), len(others))) / 2) // step * step
    return price if gain(price, value, seat) >= 0 else _acceptable(value, seat, step)


def best_price(value: int, others: Sequence[int], seat: int, step: int = 1) -> tuple[int, Fraction]:
    """Return the price of the best last offer, and its expected gain.

    The other accepts any price that loses it nothing, so the best price is the value of one of those that the other
    may be; the seat's own value where no price gains anything.

    Args:
        value: Value of the seat that offers.
        others: Values that the other seat may have, all equally likely.
        seat: ``SELLER`` or ``BUYER``.
        step: Prices are multiples of it.

    >>> best_price(80, [120], SELLER), best_price(80, [80, 100, 120, 150], SELLER)
    ((120, Fraction(40, 1)), (120, Fraction(20, 1)))
    """
    best = _acceptable(value, seat, step), Fraction(0)
    for price in sorted({_acceptable(other, 1 - seat, step) for other in others}):
        buyers = sum(gain(price, other, 1 - seat) >= 0 for other in others)
        expected = Fraction(gain(price, value, seat) * buyers, len(others))
        if expected > best[1]:
            best = price, expected
    return best


def _acceptable(value: int, seat: int, step: int) -> int:
    """Return the price that gains a seat the least without a loss: its value, or the next step."""
    return -(-value // step) * step if seat == SELLER else value // step * step
