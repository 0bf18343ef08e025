"""Players of bargaining, which see only their view."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.tablegames.bargaining.rules import Plan, endless_plan, perfect_plans

_ANCHOR = re.compile(
    r"pie (?P<pie>\d+) in steps of (?P<step>\d+); discounts (?P<own>\S+) and (?P<other>\S+); "
    r"round (?P<round>\d+)(?: of (?P<last>\d+))?; (?:no offer|player_\d keeps (?P<keep>\d+))"
)


class PlayerView(NamedTuple):
    """Facts in an anchor.

    Args:
        pie: Amount to divide.
        step: Shares are multiples of it.
        own: The seat's discount.
        other: The other seat's, None if unknown.
        round: The round.
        last: The last round, None if unknown.
        keep: Share proposed by the other seat for itself, None if it is this seat's turn to propose.
    """

    pie: int
    step: int
    own: float
    other: float | None
    round: int
    last: int | None
    keep: int | None


def view_of(anchor: str) -> PlayerView:
    """Return what an anchor of a game that continues says.

    >>> view_of("pie 100 in steps of 1; discounts 0.9 and unknown; round 2 of 12; no offer")
    PlayerView(pie=100, step=1, own=0.9, other=None, round=2, last=12, keep=None)
    """
    match = _ANCHOR.fullmatch(anchor)
    if match is None:
        raise ValueError(f"no anchor of a game of bargaining that goes on: {anchor!r}.")
    last, keep = match["last"], match["keep"]
    other = None if match["other"] == "unknown" else float(match["other"])
    return PlayerView(
        pie=int(match["pie"]),
        step=int(match["step"]),
        own=float(match["own"]),
        other=other,
        round=int(match["round"]),
        last=int(last) if last else None,
        keep=int(keep) if keep else None,
    )


class SubgamePerfectPlayer(Player):
    """Plays the equilibrium: by backward induction where the last round is told, else the one without a last round.

    Where the other's discount is hidden it takes it to be equal to its own.
    """

    name = "subgame_perfect"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return the equilibrium's offer or answer."""
        known = view_of(view.anchor)
        plan = self._plan(known)
        if known.keep is None:
            return f"keep {plan.keep}"
        return "accept" if known.pie - known.keep >= plan.accepts_from else "reject"

    def _plan(self, known: PlayerView) -> Plan:
        other = known.own if known.other is None else known.other
        proposes = known.keep is None
        if known.last is None:
            return endless_plan(known.pie, known.own, other, proposes, known.step)
        # Seat 0 of the plans is this seat: who proposes now says who proposed first.
        first = (int(not proposes) + known.round - 1) % 2
        plans = perfect_plans(known.pie, (known.own, other), known.last, known.step, first)
        return plans[known.round - 1]


class EvenSplitPlayer(Player):
    """Offers the half, and accepts whatever is no less than the half."""

    name = "even_split"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return an even offer, or accept one."""
        known = view_of(view.anchor)
        half = known.pie // (2 * known.step) * known.step
        if known.keep is None:
            return f"keep {half}"
        return "accept" if known.pie - known.keep >= half else "reject"
