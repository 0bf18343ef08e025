"""Text view of a BabyAI agent: 7 by 7 cells, as far as walls and doors allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

FACING = ("east", "south", "west", "north")
"""The package's number of a direction -> its name."""
_AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
_BARE = ("", "wall")
_NOTHING_NEAR = "Nothing but floor and walls is in sight."

Cell = tuple[int, int]
"""Columns to the east and rows to the south of where the agent started."""


class Seen(NamedTuple):
    """A cell that is in view.

    Args:
        ahead: Steps ahead of the agent, 0 to 6.
        right: Steps to the right; negative to the left.
        name: Content, empty for floor.
    """

    ahead: int
    right: int
    name: str


def name_of(thing: Any) -> str:
    """Return the name of what is in a cell, empty for floor."""
    if thing is None or thing.type == "floor":
        return ""
    if thing.type == "wall":
        return "wall"
    if thing.type == "door":
        state = "open" if thing.is_open else "locked" if thing.is_locked else "closed"
        return f"{state} {thing.color} door"
    return f"{thing.color} {thing.type}"


class _Outside:
    """Cells beyond the edge of a level, which look like walls."""

    type = "wall"

    def see_behind(self) -> bool:
        return False


_OUTSIDE = _Outside()


def look(level: Any) -> list[Seen]:
    """Return the cells in view, without the agent's own, in the order of rows from near to far.

    They are those of the package's ``gen_obs_grid``, which copies and turns the view cell by cell and takes several
    times as long.
    """
    rows = _ahead_of(level)
    visible, middle = _visible(rows), len(rows) // 2
    return [
        Seen(ahead, column - middle, name_of(thing))
        for ahead, row in enumerate(rows)
        for column, thing in enumerate(row)
        if visible[ahead][column] and (ahead or column != middle)
    ]


def _ahead_of(level: Any) -> list[list[Any]]:
    """Return what is in the rows ahead of the agent, its own first, each from left to right."""
    cells, width, height, size = level.grid.grid, level.grid.width, level.grid.height, level.agent_view_size
    (ahead_x, ahead_y), (right_x, right_y) = _AHEAD[level.agent_dir], _AHEAD[(level.agent_dir + 1) % 4]
    x, y = int(level.agent_pos[0]) - size // 2 * right_x, int(level.agent_pos[1]) - size // 2 * right_y
    rows = []
    for _ in range(size):
        row = [(x + right_x * column, y + right_y * column) for column in range(size)]
        rows.append([cells[j * width + i] if 0 <= i < width and 0 <= j < height else _OUTSIDE for i, j in row])
        x, y = x + ahead_x, y + ahead_y
    return rows


def _visible(rows: list[list[Any]]) -> list[list[bool]]:
    """Return which cells are seen: sight spreads along a row and to the next one, but not through what hides things."""
    size = len(rows)
    visible = [[False] * size for _ in range(size + 1)]
    visible[0][size // 2] = True
    for here, beyond, row in zip(visible, visible[1:], rows, strict=False):
        clear = [thing is None or thing.see_behind() for thing in row]
        for step, columns in ((1, range(size - 1)), (-1, range(size - 1, 0, -1))):
            for column in columns:
                if here[column] and clear[column]:
                    here[column + step] = beyond[column + step] = beyond[column] = True
    return visible


def describe(seen: Iterable[Seen], facing: int, carried: str) -> str:
    """Return a view in words.

    >>> cells = [Seen(1, 0, ""), Seen(2, 0, "wall"), Seen(1, -1, "red ball"), Seen(0, 1, "wall")]
    >>> print(describe(cells, 0, "grey key"))
    You face east and carry a grey key.
    Walls: 2 steps ahead, 1 step to the right.
    You see a red ball 1 step ahead and 1 step to the left.
    """
    cells = list(seen)
    straight = sorted([each for each in cells if each.name == "wall" and not (each.ahead and each.right)], key=_near)
    nearest = {("ahead" if each.ahead else "right" if each.right > 0 else "left"): each for each in reversed(straight)}
    walls = [_place(nearest[side]) for side in ("ahead", "left", "right") if side in nearest]
    things = [
        f"{_with_article(each.name)} {_place(each)}" for each in sorted(cells, key=_near) if each.name not in _BARE
    ]
    held = _with_article(carried) if carried else "nothing"
    return "\n".join(
        [
            f"You face {FACING[facing]} and carry {held}.",
            *([f"Walls: {', '.join(walls)}."] if walls else []),
            f"You see {'; '.join(things)}." if things else _NOTHING_NEAR,
        ]
    )


def _near(cell: Seen) -> tuple[int, int, int]:
    return cell.ahead + abs(cell.right), cell.ahead, cell.right


def _place(cell: Seen) -> str:
    ahead = [f"{_steps(cell.ahead)} ahead"] if cell.ahead else []
    side = [f"{_steps(abs(cell.right))} to the {'right' if cell.right > 0 else 'left'}"] if cell.right else []
    return " and ".join(ahead + side)


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def cell_of(cell: Seen, at: Cell, facing: int) -> Cell:
    """Return which cell of the map a cell in view is.

    >>> cell_of(Seen(2, 1, ""), (0, 0), 0)
    (2, 1)
    """
    (ahead_x, ahead_y), (right_x, right_y) = _AHEAD[facing], _AHEAD[(facing + 1) % 4]
    return (
        at[0] + ahead_x * cell.ahead + right_x * cell.right,
        at[1] + ahead_y * cell.ahead + right_y * cell.right,
    )


def remember(known: dict[Cell, str], seen: Iterable[Seen], at: Cell, facing: int) -> None:
    """Note what is in view on the map of things that the agent knows; walls and floor are not on it."""
    known.pop(at, None)
    for each in seen:
        cell = cell_of(each, at, facing)
        if each.name in _BARE:
            known.pop(cell, None)
        else:
            known[cell] = each.name


def map_text(known: Mapping[Cell, str]) -> str:
    """Return the map as text, in one order.

    >>> map_text({(1, -2): "red ball"})
    'red ball at (1, -2)'
    """
    return "\n".join(f"{name} at {cell}" for cell, name in sorted(known.items()))
