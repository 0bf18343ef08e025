"""Shortest paths on maps of NetHack, by the rules of its moves."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable
from typing import Any, TypeAlias

import numpy as np

Cell: TypeAlias = tuple[int, int]
"""Column and row."""
MOVES: dict[str, Cell] = {
    "north": (0, -1),
    "south": (0, 1),
    "east": (1, 0),
    "west": (-1, 0),
    "northeast": (1, -1),
    "northwest": (-1, -1),
    "southeast": (1, 1),
    "southwest": (-1, 1),
}
"""Direction -> step."""
MAP_GLYPHS, TRAPS, BOULDER = 2359, 2401, 2353
"""First glyph of the ground, first glyph of a trap, and the glyph of a boulder, in NetHack 3.6."""
DOORS, CLOSED = (2372, 2373, 2374, 2375), (2374, 2375)
"""Glyphs of open and closed doors, which are entered and left straight on."""
STAIRS_DOWN = 2383
_STEP, _OPEN, _FIGHT, _TRAP = 1, 2, 4, 20


def _floor(glyphs: Any) -> Any:
    """Return an array of bools: cells of ground that can be walked on."""
    ground = glyphs - MAP_GLYPHS
    return ((ground >= 12) & (ground <= 16)) | ((ground >= 19) & (ground <= 31)) | (ground == 33)


class Plan:
    """A map to find paths on.

    Args:
        glyphs: Glyphs that the player has in view or remembers, of shape (rows, columns).
        known: Glyphs of the whole level, of the same shape; None for what the player knows alone.
    """

    def __init__(self, glyphs: Any, known: Any = None) -> None:
        ground = glyphs.copy() if known is None else np.where(_is_ground(glyphs), glyphs, known)
        self._ground = ground
        is_thing = ~_is_ground(ground, with_stone=True)
        is_trap = (ground >= TRAPS) & (ground < TRAPS + 22)
        costs = np.where(_floor(ground) | is_thing, _STEP, 0)
        costs[np.isin(ground, CLOSED)] = _OPEN
        costs[is_trap] = _TRAP
        costs[(ground == BOULDER) | (glyphs == BOULDER)] = 0
        costs[(glyphs < MAP_GLYPHS - 1000) & (costs > 0)] += _FIGHT
        self._costs = costs.tolist()
        self.doors = cells_of(np.isin(ground, DOORS))
        """Cells of doors, which are entered and left straight on."""
        self.barred: Container[tuple[Cell, str]] = ()
        """Steps that are not taken: from a cell in a direction."""
        self.size: Cell = (ground.shape[1], ground.shape[0])

    def charge(self, cells: Iterable[Cell], cost: int) -> None:
        """Set the cost of entering some cells, 0 if they cannot be entered."""
        for x, y in cells:
            self._costs[y][x] = cost

    def cells(self, *glyphs: int) -> set[Cell]:
        """Return the cells of some kinds of ground."""
        return cells_of(np.isin(self._ground, glyphs))

    def steps(self, cell: Cell) -> list[tuple[str, Cell, int]]:
        """Return direction, cell and cost of the steps from a cell."""
        found = []
        for name, (dx, dy) in MOVES.items():
            x, y = cell[0] + dx, cell[1] + dy
            if not (0 <= x < self.size[0] and 0 <= y < self.size[1]) or not self._costs[y][x]:
                continue
            if (dx and dy and ((x, y) in self.doors or cell in self.doors)) or (cell, name) in self.barred:
                continue
            found.append((name, (x, y), self._costs[y][x]))
        return found

    def path(self, start: Cell, targets: Container[Cell]) -> list[str] | None:
        """Return the directions of a cheapest path to one of some cells; None if none is reached."""
        costs, came = self.reach(start, targets)
        cell = next(reversed(costs))
        if cell not in targets:
            return None
        names = []
        while cell != start:
            name, cell = came[cell]
            names.append(name)
        return names[::-1]

    def reach(self, start: Cell, targets: Container[Cell] = ()) -> tuple[dict[Cell, int], dict[Cell, tuple[str, Cell]]]:
        """Return the costs of the cells that are reached, nearest first, up to the first of some cells.

        Returns:
            Cell -> cost of the cheapest path, and cell -> direction of the last step of that path and cell before it.
        """
        found: dict[Cell, int] = {}
        costs, queue = {start: 0}, [(0, start)]
        came: dict[Cell, tuple[str, Cell]] = {}
        while queue:
            cost, cell = heapq.heappop(queue)
            if cell in found:
                continue
            found[cell] = cost
            if cell in targets:
                break
            for name, after, price in self.steps(cell):
                if cost + price < costs.get(after, 10**9):
                    costs[after], came[after] = cost + price, (name, cell)
                    heapq.heappush(queue, (cost + price, after))
        return found, came


def cells_of(mask: Any) -> set[Cell]:
    """Return the cells where an array of bools, of shape (rows, columns), is true."""
    rows, columns = mask.nonzero()
    return set(zip(columns.tolist(), rows.tolist(), strict=True))


def _is_ground(glyphs: Any, with_stone: bool = False) -> Any:
    """Return an array of bools: cells that show ground or a trap, and no creature or thing."""
    first = MAP_GLYPHS if with_stone else MAP_GLYPHS + 1
    return (glyphs >= first) & (glyphs < MAP_GLYPHS + 64)
