"""Texts of path finding: rules and what a seat sees, and reading the latter back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from turngym.envs.pathfinding.grid import MOVES, Collision, Grid
from turngym.envs.pathfinding.world import OnTarget, World

_COLLISIONS: Mapping[Collision, str] = {
    "soft": (
        "Two players who would swap cells both stay; of several who want one cell only the one of the lowest number "
        "goes; a cell can be entered while its player leaves it, else whoever wants it stays."
    ),
    "priority": "The players go in order of their numbers, each only to a cell that is empty by then.",
    "block_both": "Nobody goes to a cell in which another player is, or to which another one wants to go.",
}
VANISHES = "A player who comes to its goal gets 1 point and vanishes."
_ENDS: Mapping[OnTarget, str] = {
    "nothing": (
        "Players stay in the game at their goals. All players win, and get 1 point, when all are at their goals at "
        "once within {steps} steps."
    ),
    "finish": (f"{VANISHES} All players win when all have come to their goals within {{steps}} steps."),
    "restart": (
        "A player who comes to its goal gets 1 point and another goal. There are {steps} steps; all players win if "
        "each has come to a goal."
    ),
}
_STATUS = re.compile(r"Step ([0-9]+) of ([0-9]+)\. You are player_([0-9]) at row ([0-9]+), column ([0-9]+)\. ")
_GOAL = re.compile(r"Your goal G: row ([0-9]+), column ([0-9]+)\b")
_OTHER = re.compile(r"player_([0-9]): row ([0-9]+), column ([0-9]+)(?:, goal row ([0-9]+), column ([0-9]+))?\.")


def instructions(
    seats: int, steps: int, on_target: OnTarget, collision: Collision, radius: int | None, talk: bool
) -> str:
    """Return the rules."""
    view = "You see the whole grid." if radius is None else (
        f"You see {radius} {'row' if radius == 1 else 'rows'} and columns in each direction, walls do not hide "
        "anything, and the grid shows what you have seen so far."
    )  # fmt: skip
    says = "Before each step every player says one thing to the players who see it." if talk else ""
    told = (
        f"{seats} players walk on a grid. Each has a goal. In each step all at once stay or go one cell up, down, left "
        f"or right; nobody enters a wall or leaves the grid. {_COLLISIONS[collision]}",
        _ENDS[on_target].format(steps=steps),
        f"{view} Rows and columns are counted from 0 at the top left. Symbols: . free, # wall, ? not seen, 0 to 9 the "
        "players by their numbers, G your goal.",
        says,
        f"When you go, answer with one of these words in brackets: {', '.join(MOVES)}.",
    )
    return "\n".join(filter(None, told))


def offset(grid: Grid, start: int, goal: int) -> str:
    """Return where a goal is from a cell.

    >>> offset(Grid(("...", "...")), 3, 2), offset(Grid(("..",)), 1, 1)
    ('1 up, 2 right', 'here')
    """
    (row, column), (to_row, to_column) = grid.place(start), grid.place(goal)
    down, right = to_row - row, to_column - column
    parts = [f"{abs(down)} {'down' if down > 0 else 'up'}"] if down else []
    parts += [f"{abs(right)} {'right' if right > 0 else 'left'}"] if right else []
    return ", ".join(parts) or "here"


@lru_cache(maxsize=64)
def _places(width: int, size: int) -> tuple[str, ...]:
    """Return row and column of each cell in words."""
    return tuple([f"row {cell // width}, column {cell % width}" for cell in range(size)])


def view(world: World, seat: int, most_steps: int) -> str:
    """Return the state of the game as a seat sees it."""
    grid, here, goal = world.grid, world.positions[seat], world.goals[seat]
    width = grid.width
    places = _places(width, grid.size)
    status = f"Step {min(world.step + 1, most_steps)} of {most_steps}. You are player_{seat} at {places[here]}. "
    status += f"Your goal G: {places[goal]} ({offset(grid, here, goal)})."
    cells, seen = list(world.cells(seat)), world.seen(seat)
    cells[goal] = "G"
    for other in seen:
        cells[world.positions[other]] = str(other)
    rows = ["".join(cells[start : start + width]) for start in range(0, len(cells), width)]
    ends = ["" if world.radius else f", goal {places[each]}" for each in world.goals]
    others = [f"player_{other}: {places[world.positions[other]]}{ends[other]}." for other in seen if other != seat]
    return "\n".join([status, *rows, *others])


class Sight(NamedTuple):
    """What a seat sees, read from its text.

    Args:
        rows: The grid, ``?`` where it is unknown.
        seat: The seat's number.
        here: Its cell.
        goal: Its goal.
        others: Number of each other player that is seen -> its cell and its goal; -1 for an unknown goal.
    """

    rows: tuple[str, ...]
    seat: int
    here: int
    goal: int
    others: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, text: str) -> Sight:
        """Read what :func:`view` returned."""
        status, *lines = text.split("\n")
        found, goal = _STATUS.match(status), _GOAL.search(status)
        assert found is not None and goal is not None, status
        width = len(lines[0])
        rows = list(takewhile(lambda line: not line.startswith("player_"), lines))
        seat, here = int(found[3]), _cell(found.groups()[3:], width)
        goals = _cell(goal.groups(), width)
        others = {}
        for line in lines[len(rows) :]:
            other = _OTHER.fullmatch(line)
            if other is not None:
                end = _cell(other.groups()[3:], width) if other[4] else -1
                others[int(other[1])] = _cell(other.groups()[1:3], width), end
        symbols = str.maketrans("0123456789G", "." * 11)
        return cls(tuple([row.translate(symbols) for row in rows]), seat, here, goals, others)


def _cell(numbers: Sequence[str], width: int) -> int:
    return int(numbers[0]) * width + int(numbers[1])
