"""Drawing levels: rooms in a row with something between them, until the search finds a solution of the right length."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from turngym.envs.rules import mechanics as kind
from turngym.envs.rules.game import Extra, Rules
from turngym.envs.rules.mechanics import FIRST, Level, State, settled
from turngym.envs.rules.solver import solve
from turngym.envs.website.draw import Dice
from turngym.errors import BrokenCode

_GATES: Mapping[Extra, int] = {
    **{"key": kind.DOOR, "gate": kind.SHUT, "arrow": kind.ARROW, "crumble": kind.CRUMBLE, "dial": kind.DIAL},
    **{"block": kind.FLOOR, "portal": kind.WALL},
}
"""Extra that stands between two rooms -> kind of the cell through which the way leads."""
_WIDTHS = {1: (5,), 2: (3, 3), 3: (2, 3, 2), 4: (2, 2, 2, 3)}
"""Number of rooms -> columns of each."""
_STRICT, _LOOSE = 60, 20
"""Attempts at a level with everything that it should have, and with each thing less."""
_LONGEST = 28
_COUNTS = (2, 2, 3, 3, 3)
"""Number of items or lamps by number of the level."""


class _Draft:
    """A level that is being drawn.

    Args:
        rules: The rules of the game.
        number: Number of the level, from 0.
        dice: Source of randomness.
        fewer: Number of extras that the level lacks.
    """

    def __init__(self, rules: Rules, number: int, dice: Dice, fewer: int) -> None:
        self.rules, self.dice = rules, dice
        extras = rules.extras[: max(0, number - fewer)]
        self.between = sorted((each for each in extras if each in _GATES), key=lambda each: dice.share())
        self.hazards = dice.whole(2, 3) if "hazard" in extras else 0
        widths = _WIDTHS[len(self.between) + 1]
        self.height = dice.whole(4, 5)
        self.width = sum(widths) + len(self.between)
        cells = self.width * self.height
        self.kinds, self.numbers = [kind.FLOOR] * cells, [0] * cells
        self.blocks, self.exit, self.plates = 0, -1, 0
        self.mask = self.wanted = 0
        self.colour_bits = 2 if rules.goal == "match" else 1
        self.items = 0 if rules.goal in ("reach", "cover") else _COUNTS[number]
        self.bits = FIRST + self.items * self.colour_bits  # the first ones, in order
        self.rooms = list[list[int]]()
        self.tops = list[int]()
        left = 0
        for width in widths:
            self.rooms.append(list(range(left * self.height, (left + width) * self.height)))
            left += width + 1
            self.tops.append((left - 1) * self.height)  # of the wall behind the room

    def level(self) -> Level | None:
        """Return the level, None where there is no place for everything."""
        try:
            self._divide()
            start = self._take(0)
            self._fill()
        except (IndexError, ValueError):  # no place is left, or it is taken
            return None
        walls = {cell for cell, what in enumerate(self.kinds) if what == kind.WALL}
        grid = _grid(self.width, self.height, self.rules.is_round)
        near = [[-1 if cell in walls else cell for cell in row] for row in grid]
        level = Level(
            self.rules,
            self.height,
            self.kinds,
            self.numbers,
            near,
            (start, self.blocks, 0, 0),
            self.mask,
            self.wanted,
            self.exit,
            self.plates,
            self.bits,
            kind.SHUT in self.kinds,
        )
        return settled(level)

    def _take(self, room: int) -> int:
        """Return a free cell of a room, which is free no longer."""
        cells = self.rooms[room]
        return cells.pop(int(self.dice.share() * len(cells)))

    def _put(self, what: int, room: int, number: int = 0) -> int:
        cell = self._take(room)
        self.kinds[cell], self.numbers[cell] = what, number
        return cell

    def _divide(self) -> None:
        """Put a wall with a way through it between each two rooms, and walls into the rooms."""
        dice, height, falls = self.dice, self.height, self.rules.move == "fall"
        for place, extra in enumerate(self.between):
            top = self.tops[place]
            self.kinds[top : top + height] = [kind.WALL] * height
            way = top + (dice.one((0, height - 1)) if falls else dice.whole(0, height - 1))
            self.kinds[way] = _GATES[extra]
            if extra == "portal":
                self._portals(place)
                continue
            for room, beside in ((place, way - height), (place + 1, way + height)):
                self.rooms[room].remove(beside)  # where nothing may stand
            if extra == "crumble":
                self.numbers[way], self.bits = self.bits, self.bits + 1
            if extra == "block":
                self.blocks |= 1 << way
        slides = self.rules.move == "slide"
        for room, cells in enumerate(self.rooms):
            for _ in range(dice.whole(int(slides), len(cells) // (3 if slides else 5))):
                self._put(kind.WALL, room)

    def _portals(self, room: int) -> None:
        one, other = self._put(kind.PORTAL, room), self._put(kind.PORTAL, room + 1)
        self.numbers[one], self.numbers[other] = other, one

    def _fill(self) -> None:
        """Put in what opens the ways, what the goal is about, and hazards."""
        dice, last = self.dice, len(self.rooms) - 1
        for place, extra in enumerate(self.between):
            if extra == "key":
                self._put(kind.KEY, dice.whole(0, place))
            if extra == "gate" and self.rules.trigger == "lever":
                self._put(kind.LEVER, dice.whole(0, place))
            if extra == "gate" and dice.share() < 0.5:
                self._put(kind.OPEN, dice.whole(0, last))
        self._put_goal(last)
        for _ in range(self.hazards):
            self._put(kind.HAZARD, dice.whole(0, last))

    def _put_goal(self, last: int) -> None:
        dice, goal = self.dice, self.rules.goal
        if goal == "reach" or self.rules.then_exit:
            self.exit = self._put(kind.EXIT, last if goal == "reach" else dice.whole(0, last))
        if goal == "cover":
            self.plates = 1 << self._put(kind.PLATE, last)
            self.blocks |= 1 << self._take(last)
        for place in range(self.items):
            bit = FIRST + place * self.colour_bits
            room = last if place == 0 else dice.whole(0, last)
            self._put(kind.LAMP if goal in ("light", "match") else kind.GEM, room, bit)
            self.mask |= (1 << self.colour_bits) - 1 << bit
            self.wanted |= (dice.whole(1, 2) if goal == "match" else 1) << bit


@cache
def _grid(width: int, height: int, is_round: bool) -> tuple[tuple[int, ...], ...]:
    """Return for each direction, right, down, left and up, the neighbour of each cell, or -1 at the edge."""
    found = list[tuple[int, ...]]()
    for right, down in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        row = list[int]()
        for cell in range(width * height):
            x, y = cell // height + right, cell % height + down
            y = y % height if is_round else y
            row.append(x * height + y if 0 <= x < width and 0 <= y < height else -1)
        found.append(tuple(row))
    return tuple(found)


def draw_level(rules: Rules, number: int, dice: Dice) -> tuple[Level, dict[State, int]]:
    """Draw a level that can be solved, and return it with a shortest solution: state -> button.

    Args:
        rules: The rules of the game.
        number: Number of the level, from 0; later ones have more in them.
        dice: Source of randomness.

    Raises:
        BrokenCode: The rules leave no level, which tests exclude.
    """
    for attempt in range(_STRICT + _LOOSE * (number + 2)):
        fewer = max(0, attempt - _STRICT + _LOOSE) // _LOOSE
        level = _Draft(rules, number, dice, fewer).level()
        solution = None if level is None else solve(level, level.start)
        if level and solution and (1 if fewer else 3 + number) <= len(solution) <= _LONGEST:
            return level, solution
    raise BrokenCode(f"no level {number + 1} of the game {rules.text} can be solved.")
