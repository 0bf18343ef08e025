"""Grids with walls: cells, steps, distances, and collisions of agents that move at once.

Cells are numbered row by row from 0. The rules of collisions are those of POGEMA 1.4.0 (Skrynnik et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

MOVES = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""Move -> change of row and column."""

Collision: TypeAlias = Literal["soft", "priority", "block_both"]
"""Rule of collisions: see :func:`advance`."""
FAR = 10**6
"""Distance between cells that are not connected."""


class Grid(NamedTuple):
    """A grid.

    Args:
        rows: Rows of equal length, ``.`` free and ``#`` wall.

    >>> Grid(("..#", "...")).size, Grid(("..#", "...")).free
    (6, (0, 1, 3, 4, 5))
    """

    rows: tuple[str, ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.rows[0])

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.rows) * self.width

    @property
    def free(self) -> tuple[int, ...]:
        """The cells that are not walls."""
        return tuple([cell for cell, symbol in enumerate("".join(self.rows)) if symbol != "#"])

    def place(self, cell: int) -> tuple[int, int]:
        """Return row and column of a cell."""
        return divmod(cell, self.width)

    def after(self, cell: int, move: str) -> int:
        """Return the cell to which a move leads; the same one if it is not free."""
        row, column = divmod(cell, self.width)
        down, right = MOVES[move]
        row, column = row + down, column + right
        is_inside = 0 <= row < len(self.rows) and 0 <= column < self.width
        return row * self.width + column if is_inside and self.rows[row][column] != "#" else cell

    def move(self, cell: int, target: int) -> str:
        """Return the move that leads from a cell to an adjacent one, or to itself."""
        (row, column), (to_row, to_column) = self.place(cell), self.place(target)
        return next(name for name, each in MOVES.items() if each == (to_row - row, to_column - column))


@lru_cache(maxsize=256)
def steps(grid: Grid) -> tuple[tuple[int, ...], ...]:
    """Return for each cell the cells where one step can end: itself, and the free ones next to it."""
    return tuple([tuple(dict.fromkeys(grid.after(cell, move) for move in MOVES)) for cell in range(grid.size)])


@lru_cache(maxsize=4096)
def distances(grid: Grid, goal: int) -> tuple[int, ...]:
    """Return the number of steps from each cell to a goal; :data:`FAR` where there is no way.

    >>> distances(Grid(("..#", "#..")), 0)
    (0, 1, 1000000, 1000000, 2, 3)
    """
    near, found = steps(grid), [FAR] * grid.size
    found[goal] = 0
    queue = [goal]
    for cell in queue:
        for other in near[cell]:
            if found[other] == FAR:
                found[other] = found[cell] + 1
                queue.append(other)
    return tuple(found)


def advance(positions: Sequence[int], targets: Sequence[int], rule: Collision = "soft") -> list[int]:
    """Return where agents are after all have tried to step at once.

    ``soft``: two that would swap stay; of several that step to one cell only the first does; a step to a cell whose
    agent stays is none, and so on. So agents can follow each other, also in a circle. ``priority``: one after the other
    in order, each to a cell that is free by then. ``block_both``: nobody steps to a cell that another one is at or
    steps to.

    Args:
        positions: Cell of each agent.
        targets: Cell that each wants: its own or an adjacent free one.
        rule: Rule of collisions.

    >>> advance([0, 1, 5], [1, 2, 2]), advance([0, 1], [1, 0]), advance([0, 1, 4, 3], [1, 4, 3, 0])
    ([1, 2, 5], [0, 1], [1, 4, 3, 0])
    >>> advance([0, 1], [1, 2], "priority"), advance([0, 2], [1, 1], "block_both")
    ([0, 2], [0, 2])
    """
    found = list(targets)
    if rule == "priority":
        now = list(positions)
        for agent, target in enumerate(targets):
            if target not in now:
                now[agent] = target
        return now
    if rule == "block_both":
        for agent, target in enumerate(targets):
            others = [other for other in range(len(found)) if other != agent]
            if any(target in (positions[other], targets[other]) for other in others):
                found[agent] = positions[agent]
        return found
    agent_at = {cell: agent for agent, cell in enumerate(positions)}
    taken: set[int] = set()
    for agent, (cell, target) in enumerate(zip(positions, targets, strict=True)):
        other = agent_at.get(target, agent)
        is_swap = other != agent and targets[other] == cell
        if target == cell or is_swap or target in taken:
            found[agent] = cell
        else:
            taken.add(target)
    waiting = [agent for agent, cell in enumerate(positions) if found[agent] == cell]
    for blocked in waiting:
        for agent, cell in enumerate(positions):
            if found[agent] == positions[blocked] and agent != blocked:
                found[agent] = cell
                waiting.append(agent)
    return found
