"""What a button does to a level: the exact rules, on states of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from turngym.envs.rules.game import FLIP, SWITCH, Rules

State: TypeAlias = tuple[int, int, int, int]
"""Cell of the avatar, cells of blocks as bits, changed things as bits, and quarter turns of the directions."""
# fmt: off
FLOOR, PLATE, EXIT, WALL, DOOR, SHUT, OPEN, CRUMBLE, ARROW, KEY, LEVER, HAZARD, PORTAL, DIAL, GEM, LAMP = range(16)
# fmt: on
"""Kinds of cells: up to ``EXIT`` they do nothing, up to ``ARROW`` they may be closed, the others do something."""
PHASE, DOWN, HELD, FIRST = 1, 2, 4, 3
"""Bits: whether gates have changed, whether gravity is turned, whether the key is held; the first of other things."""
COLOURS = 3
FORWARD = 0
"""The direction in which arrows can be passed."""


@dataclass(slots=True, eq=False)
class Level:
    """A level.

    Args:
        rules: The rules of the game.
        height: Cells of a column; cell ``x * height + y`` is in column ``x``.
        kinds: Kind of each cell.
        numbers: For each cell its bit, the rank of its item, or the other end of its portal.
        near: For each direction the neighbour of each cell, or -1 where nothing can go.
        start: The first state.
        mask: Bits that the goal is about.
        wanted: Their values when it is reached.
        exit: Cell that must be reached in the end, or -1.
        plates: Cells that blocks must cover, as bits.
        bits: Number of bits in use.
        has_gates: Whether it has gates.
    """

    rules: Rules
    height: int
    kinds: list[int]
    numbers: list[int]
    near: list[list[int]]
    start: State
    mask: int
    wanted: int
    exit: int
    plates: int
    bits: int
    has_gates: bool

    def is_solved(self, state: State) -> bool:
        """Return whether a state solves the level."""
        return (
            state[2] & self.mask == self.wanted
            and (self.exit < 0 or state[0] == self.exit)
            and state[1] & self.plates == self.plates
        )

    def share(self, state: State) -> float:
        """Return the share of the goal that is met, without the exit."""
        if self.plates:
            return (state[1] & self.plates).bit_count() / self.plates.bit_count()
        if not self.mask:
            return 0.0
        wrong = (state[2] ^ self.wanted) & self.mask
        if self.rules.goal == "match":
            wrong = (wrong | wrong >> 1) & self.mask // COLOURS
            return 1.0 - 2 * wrong.bit_count() / self.mask.bit_count()
        return 1.0 - wrong.bit_count() / self.mask.bit_count()


def press(level: Level, state: State, button: int) -> State:
    """Return the state after a button; the same object if nothing happens."""
    rules = level.rules
    if button == SWITCH:
        at, blocks, bits, turned = state
        return (at, blocks, bits ^ PHASE, turned) if level.has_gates else state
    if rules.move == "step":
        after = enter(level, state, (button + state[3]) & 3)
    elif rules.move == "slide":
        after = _slid(level, state, (button + state[3]) & 3)
    else:
        after = _walked(level, state, button)
    if after is None:
        return level.start
    if rules.trigger == "clock" and level.has_gates:
        at, blocks, bits, turned = after
        return at, blocks, bits ^ PHASE, turned
    return after


def settled(level: Level) -> Level:
    """Let the avatar of a new level fall to the ground, where things fall."""
    if level.rules.move == "fall":
        level.start = _slid(level, level.start, 1) or level.start
    return level


def _slid(level: Level, state: State, direction: int) -> State | None:
    """Move until something stops the avatar, for once around the board at most."""
    for _ in level.kinds:
        after = enter(level, state, direction)
        if after is None or after is state:
            return after
        state = after
        if level.kinds[state[0]] in (EXIT, PORTAL):
            return state
    return state


def _walked(level: Level, state: State, button: int) -> State | None:
    """Turn gravity, or go a cell to a side, and fall."""
    if button == FLIP:
        at, blocks, bits, turned = state
        after: State | None = (at, blocks, bits ^ DOWN, turned)
    else:
        after = enter(level, state, (button + 2 * state[3]) & 3)
        if after is state:
            return state
    return after if after is None else _slid(level, after, 3 if after[2] & DOWN else 1)


def enter(level: Level, state: State, direction: int) -> State | None:
    """Return the state after one cell in a direction, the same if that is blocked, None if the avatar is lost."""
    at, blocks, bits, turned = state
    to = level.near[direction][at]
    if to < 0:
        return state
    kinds = level.kinds
    if blocks >> to & 1:
        beyond = level.near[direction][to]
        if beyond < 0 or blocks >> beyond & 1 or kinds[beyond] > EXIT:
            return state
        blocks ^= 1 << to | 1 << beyond
    kind = kinds[to]
    if kind > EXIT:
        if kind <= ARROW:
            if _is_closed(level, kind, to, bits, direction):
                return state
        elif kind == HAZARD:
            return None
        elif kind == PORTAL:
            to = level.numbers[to]
        elif kind == DIAL:
            turned = (turned + 1) & (1 if level.rules.move == "fall" else 3)
        else:
            bits = _changed(level, kind, level.numbers[to], bits)
    if kinds[at] == CRUMBLE:
        bits |= 1 << level.numbers[at]
    return to, blocks, bits, turned


def _is_closed(level: Level, kind: int, cell: int, bits: int, direction: int) -> bool:
    if kind == DOOR:
        return not bits & HELD
    if kind == SHUT:
        return not bits & PHASE
    if kind == OPEN:
        return bool(bits & PHASE)
    if kind == CRUMBLE:
        return bool(bits >> level.numbers[cell] & 1)
    return direction != FORWARD


def _changed(level: Level, kind: int, number: int, bits: int) -> int:
    """Return the bits after the avatar has entered a cell that does something."""
    if kind == KEY:
        return bits | HELD
    if kind == LEVER:
        return bits ^ PHASE
    rules = level.rules
    if kind == LAMP:
        if rules.goal == "match":
            colour = bits >> number & 3
            return bits ^ (colour ^ (colour + 1) % COLOURS) << number
        return bits ^ ((1 << number | 1 << number + 1) & level.mask if rules.is_linked else 1 << number)
    earlier = (1 << number) - (1 << FIRST)
    if rules.goal == "collect" or bits >> number & 1 or bits & earlier == earlier:
        return bits | 1 << number
    return bits & ~level.mask if rules.is_linked else bits
