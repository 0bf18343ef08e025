"""Random grids of several kinds, with starts and goals between which the agents can find a way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from turngym.envs.pathfinding.grid import FAR, Grid, distances
from turngym.envs.pathfinding.planning import Problem, costs, prioritized
from turngym.envs.textgames.maze.rules import carve, most_loops

Layout: TypeAlias = Literal["random", "maze", "rooms"]
"""Kind of a grid: see :data:`LAYOUTS`."""
ROOM = 3
"""Rows and columns of a room."""
_DRAWS = 200
_MOST_PLANNED = 3_000
"""Cells of all grids that are planned on before there is an error: a second's work."""


def scattered(generator: np.random.Generator, size: int, density: float) -> Grid:
    """Return a grid in which every cell is a wall with the probability ``density``."""
    walls = (generator.random((size, size)) < density).tolist()
    return Grid(tuple(["".join(["#" if wall else "." for wall in row]) for row in walls]))


def maze(generator: np.random.Generator, size: int, density: float) -> Grid:
    """Return a maze in which half of the walls that could be doors are open, so that agents can pass each other."""
    side = size if size % 2 else size - 1
    carved = carve(generator, side, (most_loops(side) + 1) // 2)
    return Grid(tuple(carved.replace("_", ".").split("\n")))


def rooms(generator: np.random.Generator, size: int, density: float) -> Grid:
    """Return rooms of three by three cells with one door between any two adjacent ones."""
    cells = [["#" if ROOM in (row % (ROOM + 1), column % (ROOM + 1)) else "." for column in range(size)]
             for row in range(size)]  # fmt: skip
    for wall in range(ROOM, size - 1, ROOM + 1):
        for first in range(0, size, ROOM + 1):
            ways = min(ROOM, size - first)
            one, other = generator.integers(ways, size=2).tolist()
            cells[wall][first + one] = cells[first + other][wall] = "."
    return Grid(tuple(map("".join, cells)))


LAYOUTS: Mapping[Layout, Callable[[np.random.Generator, int, float], Grid]] = {
    "random": scattered,
    "maze": maze,
    "rooms": rooms,
}
"""Kinds of grids: name -> function of generator, rows and density of walls."""


def largest_part(grid: Grid) -> list[int]:
    """Return the cells of the largest part of a grid in which every cell can be reached.

    >>> largest_part(Grid(("..#.", "..#.")))
    [0, 1, 4, 5]
    """
    left, best = set(grid.free), list[int]()
    while len(left) > len(best):
        away = distances(grid, min(left))
        part = [cell for cell in sorted(left) if away[cell] < FAR]
        left.difference_update(part)
        best = max(best, part, key=len)
    return best


def draw_problem(
    generator: np.random.Generator,
    layout: Layout,
    size: int,
    density: float,
    agents: int,
    *,
    vanish: bool = False,
    most_steps: int = 64,
) -> Problem | None:
    """Return a random problem that prioritised planning solves in time; None after many draws or plans without one.

    Starts are different cells, goals too, and no agent starts at its goal. All are in the largest connected part, which
    has at least four cells for each agent.
    """
    planned = 0
    for _ in range(_DRAWS):
        grid = LAYOUTS[layout](generator, size, density)
        part = largest_part(grid)
        if len(part) < 4 * agents:
            continue
        starts, goals = [[part[place] for place in generator.permutation(len(part))[:agents].tolist()] for _ in "ab"]
        if any(start == goal for start, goal in zip(starts, goals, strict=True)):
            continue
        if any(distances(grid, goal)[start] > most_steps for start, goal in zip(starts, goals, strict=True)):
            continue  # no plan is shorter
        problem = Problem(grid, tuple(starts), tuple(goals), vanish)
        plan = prioritized(problem)
        if plan is not None and costs(plan)[1] <= most_steps:
            return problem
        planned += grid.size
        if planned > _MOST_PLANNED:
            return None
    return None
