"""Players of price negotiation, which see only their view."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.tablegames.price_negotiation.rules import BUYER, SELLER, gain, middle, perfect_plan

_ANCHOR = re.compile(
    r"you are the (?P<role>seller|buyer); values (?P<own>\d+) and (?P<others>[0-9/]+) in steps of (?P<step>\d+); "
    r"round (?P<round>\d+)(?: of (?P<last>\d+))?; (?:no offer|price (?P<price>\d+))"
)


class PlayerView(NamedTuple):
    """Facts in an anchor.

    Args:
        seat: ``SELLER`` or ``BUYER``.
        own: The seat's value.
        others: Values that the other may have; one if it is known.
        step: Prices are multiples of it.
        round: The round.
        last: The last round, None if unknown.
        price: Price to be answered, None if it is this seat's turn to offer.
    """

    seat: int
    own: int
    others: tuple[int, ...]
    step: int
    round: int
    last: int | None
    price: int | None


def view_of(anchor: str) -> PlayerView:
    """Return what an anchor of a running game says.

    >>> view_of("you are the buyer; values 120 and 80/100 in steps of 1; round 2 of 10; no offer").others
    (80, 100)
    """
    match = _ANCHOR.fullmatch(anchor)
    if match is None:
        raise ValueError(f"not an anchor of a running price negotiation: {anchor!r}.")
    last, price = match["last"], match["price"]
    return PlayerView(
        seat=SELLER if match["role"] == "seller" else BUYER,
        own=int(match["own"]),
        others=tuple([int(value) for value in match["others"].split("/")]),
        step=int(match["step"]),
        round=int(match["round"]),
        last=int(last) if last else None,
        price=int(price) if price else None,
    )


class SubgamePerfectPlayer(Player):
    """Plays the equilibrium: who makes the last offer takes the whole surplus, since waiting costs nothing.

    Where the last round is not told it offers and accepts an even split of the surplus. Where the other's value is
    hidden it makes its best last offer in every round, and accepts what that offer is expected to gain.
    """

    name = "subgame_perfect"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return a price or an answer; leave where nothing can be gained."""
        known = view_of(view.anchor)
        plan = perfect_plan(known.seat, known.own, known.others, known.round, known.last, known.step)
        if known.price is None:
            return f"price {plan.price}"
        if gain(known.price, known.own, known.seat) >= plan.accepts_from:
            return "accept"
        return "reject" if plan.accepts_from else "leave"


class FairPricePlayer(Player):
    """Offers the price in the middle of both values, and accepts whatever gains it no less."""

    name = "fair_price"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return the price in the middle, or an answer."""
        known = view_of(view.anchor)
        price = middle(known.seat, known.own, known.others, known.step)
        if known.price is None:
            return f"price {price}"
        least = gain(price, known.own, known.seat)
        return "accept" if gain(known.price, known.own, known.seat) >= least else "reject"
