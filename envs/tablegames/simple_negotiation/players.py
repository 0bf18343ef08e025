"""Players of simple negotiation, which see only their view."""

from __future__ import annotations

import re
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.tablegames.simple_negotiation.rules import Offer, gain_of, offer_text, parsed_offer
from turngym.types import JSONValue

_OWNED = re.compile(r"(?<!\d)(\d+) (\w+) \(worth (\d+) each\)")
_TO_YOU = "offered to you: "
_DEMANDS = (3.0, 1.5, 1.3, 1.2, 1.1, 1.05)
_LARGEST = 5


class PlayerView(NamedTuple):
    """Facts in an anchor.

    Args:
        goods: Names of the goods.
        counts: How many the seat has.
        values: Value of one unit.
        offer: The offer to the seat, None if there is none.
    """

    goods: tuple[str, ...]
    counts: tuple[int, ...]
    values: tuple[int, ...]
    offer: Offer | None


def view_of(anchor: str) -> PlayerView:
    """Return what an anchor says.

    >>> view_of("you have 6 wood (worth 5 each), 13 gold (worth 15 each); offered to you: 1 gold -> 2 wood").offer
    Offer(gives=(0, 1), wants=(2, 0))
    """
    owned, _, offered = anchor.partition("; ")
    found = _OWNED.findall(owned)
    goods = tuple([good for _, good, _ in found])
    offer = parsed_offer(offered.removeprefix(_TO_YOU), goods) if offered.startswith(_TO_YOU) else None
    return PlayerView(
        goods, tuple([int(count) for count, _, _ in found]), tuple([int(value) for *_, value in found]), offer
    )


class TraderPlayer(Player):
    """Accepts whatever gains it something; else offers one good for another, and asks for less after every refusal.

    It starts by asking for three times the worth of what it gives and ends at a twentieth more than that worth. Among
    the offers of up to five each that come nearest to this, it takes the one with the largest gain.
    """

    name = "trader"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Start with the largest demand."""
        self._refused = 0
        self._counts: tuple[int, ...] = ()

    def act(self, view: SeatView) -> str:
        """Return an answer or an offer."""
        known = view_of(view.anchor)
        if known.offer is not None and gain_of(known.offer, known.values, is_proposer=False) > 0:
            if "accept" in view.legal_actions:
                return "accept"
        elif self._counts == known.counts:
            self._refused += 1
        self._counts = known.counts
        offer = nearest_offer(known, _DEMANDS[min(self._refused, len(_DEMANDS) - 1)])
        if offer is None:
            return "deny" if known.offer is not None else "pass"
        return offer_text(offer, known.goods)

    def state(self) -> JSONValue:
        """Return the number of refusals and the goods at the last offer."""
        return [self._refused, list(self._counts)]

    def load(self, state: JSONValue) -> None:
        """Take over what ``state`` returned."""
        self._refused, self._counts = state[0], tuple(state[1])


def nearest_offer(known: PlayerView, demand: float) -> Offer | None:
    """Return the offer of one good for another that asks for a demand or the least above it, of the largest gain.

    Args:
        known: View of the seat; it gives no more than it has.
        demand: Worth of what is wanted, as a multiple of the worth of what is given.

    >>> nearest_offer(PlayerView(("wood", "gold"), (9, 9), (5, 15), None), 3.0)
    Offer(gives=(5, 0), wants=(0, 5))
    """
    best: tuple[float, int, Offer] | None = None
    goods = range(len(known.goods))
    for mine, other in permutations(goods, 2):
        for give, want in product(range(1, min(_LARGEST, known.counts[mine]) + 1), range(1, _LARGEST + 1)):
            paid, got = give * known.values[mine], want * known.values[other]
            if got < demand * paid or (best is not None and (got / paid, paid - got) >= best[:2]):
                continue
            gives = tuple([give if good == mine else 0 for good in goods])
            wants = tuple([want if good == other else 0 for good in goods])
            best = got / paid, paid - got, Offer(gives, wants)
    return None if best is None else best[2]


class RefuserPlayer(Player):
    """Never trades: it cannot lose, and gains nothing."""

    name = "refuser"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return a refusal."""
        return "deny" if "deny" in view.legal_actions else "pass"
