"""Players of the beer game: base stock, anchoring and adjustment, passing orders on."""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

import numpy as np

from turngym.envs.beergame.chain import BACKLOG, NAMES
from turngym.envs.beergame.game import LARGEST_ORDER
from turngym.envs.beergame.levels import best_levels
from turngym.envs.beergame.text import PAYS_ALONE
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.errors import ConfigError

_MEAN = re.compile(r"Poisson with mean ([0-9.]{1,8}[0-9]|[0-9])")
_STAGE = re.compile(r"([0-9]{1,9}) in stock, ([0-9]{1,9}) owed, ([0-9]{1,9}) ordered and not arrived")
_MOST_DIGITS = 3


class Sight(NamedTuple):
    """A stage as its seat sees it.

    Args:
        stock: Units in stock, less those owed.
        on_order: Units ordered and not arrived.
        ordered: Units ordered from the stage in each week.
    """

    stock: int
    on_order: int
    ordered: list[int]

    @classmethod
    def of(cls, anchor: str) -> Sight:
        """Read an anchor."""
        stage, received, _ = anchor.split("\n")
        found = _STAGE.search(stage)
        assert found is not None, stage
        stock, owed, on_order = map(int, found.groups())
        return cls(stock - owed, on_order, list(map(int, received.partition(": ")[2].split())))


class _Orders(Player):
    """Orders by what the seat sees."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember; everything is in the anchor."""

    def act(self, view: SeatView) -> str:
        """Return the order, within its limits."""
        return str(min(max(self.order(view, Sight.of(view.anchor)), 0), LARGEST_ORDER))

    def order(self, view: SeatView, sight: Sight) -> int:
        """Return the order that the rule gives: here, what was ordered from the stage."""
        return sight.ordered[-1]


class PassOn(_Orders):
    """Orders what was ordered from its stage."""

    name = "pass_on"


class BaseStock(_Orders):
    """Orders up to the level of its stage with the lowest long-run cost; ``base_stock:24`` up to 24.

    A level counts stock, less what is owed, and units on order. Where demand is unknown, it passes orders on, which
    keeps the level of the start.
    """

    name = "base_stock"

    def __init__(self, level: int | None = None) -> None:
        self.level = level

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> Player:
        """Return the player with a level.

        Raises:
            ConfigError: It is not a whole number of at most three digits.
        """
        is_number = argument.isascii() and argument.isdecimal() and len(argument) <= _MOST_DIGITS
        if argument and not is_number:
            raise ConfigError(f"base_stock:N takes a whole number from 0 to 999, got {argument!r:.80}.")
        return cls(int(argument) if argument else None)

    def order(self, view: SeatView, sight: Sight) -> int:
        """Return what is missing to the level."""
        level, mean = self.level, _MEAN.search(view.instructions)
        if level is None:
            if mean is None:
                return sight.ordered[-1]
            others = 0 if PAYS_ALONE in view.instructions else BACKLOG
            level = best_levels(float(mean[1]), (BACKLOG, *[others] * (len(NAMES) - 1)))[view.seat]
        return level - sight.stock - sight.on_order


class Anchoring(_Orders):
    """Anchoring and adjustment, by which Sterman (1989) describes people, with his mean estimates.

    It orders the expected order, plus 0.26 of what stock and 0.34 of what is on order lack to a wanted stock of 17. The
    expected order is smoothed by 0.36. People underestimate what is on order, so that orders vary more and more from
    the retailer to the factory.
    """

    name = "anchoring"
    smoothing: ClassVar[float] = 0.36
    adjustment: ClassVar[float] = 0.26
    supply_line: ClassVar[float] = 0.34
    wanted: ClassVar[float] = 17.0

    def order(self, view: SeatView, sight: Sight) -> int:
        """Return the order of the rule, as a whole number."""
        expected = float(sight.ordered[0])
        for ordered in sight.ordered[1:]:
            expected += self.smoothing * (ordered - expected)
        missing = self.wanted - sight.stock - self.supply_line * sight.on_order
        return round(expected + self.adjustment * missing)
