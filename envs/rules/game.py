"""The rules of a game: how things move, what stands in the way, and what solves a level."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from turngym.envs.website.draw import Dice

Move: TypeAlias = Literal["step", "slide", "fall"]
Goal: TypeAlias = Literal["reach", "collect", "order", "light", "match", "cover"]
Extra: TypeAlias = Literal["key", "gate", "portal", "arrow", "crumble", "dial", "block", "hazard"]
Trigger: TypeAlias = Literal["lever", "button", "clock"]

MOVES: tuple[Move, ...] = ("step", "slide", "fall")
GOALS: tuple[Goal, ...] = ("reach", "collect", "order", "light", "match", "cover")
EXTRAS: tuple[Extra, ...] = ("key", "gate", "portal", "arrow", "crumble", "dial", "block", "hazard")
TRIGGERS: tuple[Trigger, ...] = ("lever", "button", "clock")
_STEPS_ONLY = ("block",)
_NOT_FALLING = ("block", "portal")
SIZES = {1: (3, 1), 2: (4, 2), 3: (5, 3)}
"""Difficulty -> number of levels, and of extras that they add one by one."""
LEFT_OR_RIGHT, FOUR_WAYS = (0, 2), (0, 1, 2, 3)
SWITCH, FLIP = 4, 5
"""Buttons that are not directions: the one that opens and closes gates, and the one that turns gravity."""


class Rules(NamedTuple):
    """The rules of a game.

    Args:
        move: How the avatar moves: a cell, until something stops it, or sideways and down to the ground.
        is_round: Whether the upper and the lower edge of the board are joined.
        goal: What solves a level.
        then_exit: Whether the exit must be reached afterwards.
        is_linked: Whether a lamp also changes the next one; whether a wrong item returns those taken in order.
        trigger: What opens and closes gates.
        extras: What stands in the way; level ``k`` has the first ``k - 1``.
        levels: Number of levels.
    """

    move: Move
    is_round: bool
    goal: Goal
    then_exit: bool
    is_linked: bool
    trigger: Trigger
    extras: tuple[Extra, ...]
    levels: int

    @property
    def buttons(self) -> tuple[int, ...]:
        """Directions and other meanings of the buttons."""
        ways = (*LEFT_OR_RIGHT, FLIP) if self.move == "fall" else FOUR_WAYS
        return (*ways, SWITCH) if "gate" in self.extras and self.trigger == "button" else ways

    @property
    def text(self) -> str:
        """Canonical text."""
        return " ".join(["+".join(each) if isinstance(each, tuple) else str(each) for each in self])


def draw_rules(dice: Dice, difficulty: int) -> Rules:
    """Draw the rules of a game; what has no meaning under the others is always the same.

    >>> import numpy as np
    >>> rules = draw_rules(Dice(np.random.default_rng(0)), 1)
    >>> rules.levels, len(rules.extras)
    (3, 1)
    """
    levels, count = SIZES[difficulty]
    move = dice.one(MOVES)
    goal = dice.one([goal for goal in GOALS if goal != "cover" or move == "step"])
    unfit = {"step": (), "slide": _STEPS_ONLY, "fall": _NOT_FALLING}[move]
    found = [extra for extra in EXTRAS if extra not in unfit]
    extras = tuple(sorted(dice.some(found, count, count), key=lambda extra: dice.share()))
    is_round, then_exit, is_linked = dice.share() < 0.3, dice.share() < 0.4, dice.share() < 0.4
    trigger = dice.one(TRIGGERS)
    return Rules(
        move,
        is_round and move != "fall",
        goal,
        then_exit and goal != "reach",
        is_linked and goal in ("order", "light"),
        trigger if "gate" in extras else "lever",
        extras,
        levels,
    )
