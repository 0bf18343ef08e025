"""Players of persuasion, which see only their view: each sells by one strategy and buys by the one that answers it."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.tablegames.persuasion.rules import commitment_rate, is_worth_it, recommends

YES_TEXT, NO_TEXT = "This product is good, I recommend it.", "I do not recommend this product."
_ANCHOR = re.compile(
    r"you are the (?P<role>seller|buyer); prior (?P<prior>\S+); worth (?:unknown|(?P<high>\S+) and (?P<low>[^;\s]+)); "
    r"(?:past: (?P<past>[^;]*)|(?P<all>\d+) of (?P<rounds>\d+) products were sold, (?P<good>\d+) of them good\.); "
    r"now: (?P<now>.*)"
)


class PlayerView(NamedTuple):
    """Facts in an anchor.

    Args:
        is_seller: Whether the seat sells.
        prior: Probability of a good product, None if unknown.
        worths: Worth of a good and of a bad product in prices, None if unknown.
        counts: Products seen of each kind: (recommended, good) -> number; sold ones for a myopic buyer, as recommended.
        now: Quality of the product for the seller, message for the buyer.
    """

    is_seller: bool
    prior: float | None
    worths: tuple[float, float] | None
    counts: dict[tuple[bool, bool], int]
    now: str


def view_of(anchor: str) -> PlayerView:
    """Return what an anchor of a running game says.

    >>> view_of("you are the buyer; prior 0.5; worth 2 and 0; past: yes good sold, no bad unsold; now: yes").counts
    {(True, True): 1, (False, False): 1}
    """
    match = _ANCHOR.fullmatch(anchor)
    if match is None:
        raise ValueError(f"not an anchor of a running game of persuasion: {anchor!r:.200}.")
    counts: dict[tuple[bool, bool], int] = {}
    if match["past"] is None:
        good, sold = int(match["good"]), int(match["all"])
        counts = {(True, True): good, (True, False): sold - good}
    for each in (match["past"] or "").split(", "):
        if each:
            said, quality, _ = each.split(" ")
            kind = said == "yes", quality == "good"
            counts[kind] = counts.get(kind, 0) + 1
    return PlayerView(
        is_seller=match["role"] == "seller",
        prior=None if match["prior"] == "unknown" else float(match["prior"]),
        worths=None if match["high"] is None else (float(match["high"]), float(match["low"])),
        counts=counts,
        now=match["now"],
    )


class _Trader(Player):
    """Recommends or not, and buys or not."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return yes or no, or a sentence where the seller says any text."""
        known = view_of(view.anchor)
        is_yes = self._recommends(known) if known.is_seller else self._buys(known)
        if view.legal_actions:
            return "yes" if is_yes else "no"
        return YES_TEXT if is_yes else NO_TEXT

    @abstractmethod
    def _recommends(self, known: PlayerView) -> bool: ...

    @abstractmethod
    def _buys(self, known: PlayerView) -> bool: ...


class CommitmentPlayer(_Trader):
    """Recommends good products, and bad ones as often as a buyer still just buys; buys by Bayes' rule.

    The buyer counts how many of the products that were recommended so far, or not, were good; it starts from two
    products at the prior. A seller that does not know the worths recommends only good products.
    """

    name = "commitment"

    def _recommends(self, known: PlayerView) -> bool:
        rate = 0.0 if known.worths is None or known.prior is None else commitment_rate(known.prior, *known.worths)
        return known.now == "good" or bool(self._random() < rate)

    def _buys(self, known: PlayerView) -> bool:
        assert known.worths is not None
        said = recommends(known.now)
        good, bad = known.counts.get((said, True), 0), known.counts.get((said, False), 0)
        start = 0.5 if known.prior is None else known.prior
        return is_worth_it((2 * start + good) / (2 + good + bad), *known.worths)


class HonestPlayer(_Trader):
    """Recommends exactly the good products; buys whatever is recommended."""

    name = "honest"

    def _recommends(self, known: PlayerView) -> bool:
        return known.now == "good"

    def _buys(self, known: PlayerView) -> bool:
        return recommends(known.now)


class AlwaysYesPlayer(_Trader):
    """Recommends every product; as the buyer, ignores recommendations and decides by the prior."""

    name = "always_yes"

    def _recommends(self, known: PlayerView) -> bool:
        return True

    def _buys(self, known: PlayerView) -> bool:
        assert known.worths is not None
        return is_worth_it(0.5 if known.prior is None else known.prior, *known.worths)
