"""Plans for all agents: space-time A*, prioritised planning and conflict-based search.

A plan holds the path of each agent, its cells at times 0, 1, ... until it is at its goal for good. There it stays, or
vanishes after the step in which it arrives. Two agents must not be in one cell at one time, nor swap cells. The cost of
an agent is its number of steps, that of a plan the sum (sum of costs); the makespan is the longest path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from turngym.envs.pathfinding.grid import FAR, Grid, distances, steps

Plan: TypeAlias = tuple[tuple[int, ...], ...]
"""Path of each agent."""
MOST_NODES = 300
_NO_CELLS: Mapping[int, int] = {}


class Problem(NamedTuple):
    """Agents that want to reach goals.

    Args:
        grid: The grid.
        starts: Cell of each agent.
        goals: Goal of each.
        vanish: Whether agents vanish at their goals instead of staying there.
    """

    grid: Grid
    starts: tuple[int, ...]
    goals: tuple[int, ...]
    vanish: bool = False


def costs(plan: Plan) -> tuple[int, int]:
    """Return the sum of costs and the makespan.

    >>> costs(((0, 1, 2), (5,)))
    (2, 2)
    """
    lengths = [len(path) - 1 for path in plan]
    return sum(lengths), max(lengths, default=0)


def lower_bound(problem: Problem) -> int:
    """Return the sum of the distances, which no plan can be shorter than."""
    return sum(distances(problem.grid, goal)[start] for start, goal in zip(problem.starts, problem.goals, strict=True))


class Taken(NamedTuple):
    """Cells and steps that an agent must not use.

    Args:
        cells: Pairs of time and cell.
        crossings: Time of arrival, cell from which and cell to which.
        parked: Cell -> time from which on it is taken for ever.
        busy: Pairs of time and cell that are better avoided, where that costs nothing.
    """

    cells: Set[tuple[int, int]] = frozenset()
    crossings: Set[tuple[int, int, int]] = frozenset()
    parked: Mapping[int, int] = _NO_CELLS
    busy: Set[tuple[int, int]] = frozenset()


FREE = Taken()


def find_path(problem: Problem, agent: int, taken: Taken = FREE) -> tuple[int, ...] | None:
    """Return a shortest path of one agent through space and time, None if there is none (A*)."""
    start, goal = problem.starts[agent], problem.goals[agent]
    left, near = distances(problem.grid, goal), steps(problem.grid)
    if left[start] == FAR or (0, start) in taken.cells:
        return None
    times = [time for time, _ in taken.cells] + [time for time, *_ in taken.crossings] + list(taken.parked.values())
    horizon = max(times, default=0) + problem.grid.size
    stops = max([time for time, cell in taken.cells if cell == goal], default=-1)
    if not problem.vanish and goal in taken.parked:
        return None
    came_from: dict[tuple[int, int], int] = {}
    seen = {(0, start)}
    queue = [(left[start], 0, left[start], 0, start)]
    while queue:
        _, met, _, time, cell = heappop(queue)
        if cell == goal and (problem.vanish or time > stops):
            return _path(came_from, time, cell)
        time += 1
        if time > horizon:
            continue
        for other in near[cell]:
            at = time, other
            if at in seen or at in taken.cells or (time, cell, other) in taken.crossings:
                continue
            if other in taken.parked and time >= taken.parked[other]:
                continue
            seen.add(at)
            came_from[at] = cell
            heappush(queue, (time + left[other], met + (at in taken.busy), left[other], time, other))
    return None


def _path(came_from: Mapping[tuple[int, int], int], time: int, cell: int) -> tuple[int, ...]:
    path = [cell]
    while time:
        cell = came_from[time, cell]
        path.append(cell)
        time -= 1
    return tuple(path[::-1])


def plan_in_order(problem: Problem, order: Iterable[int]) -> Plan | None:
    """Return a plan in which each agent keeps out of the way of those before it in order, None if one finds no way."""
    cells: set[tuple[int, int]] = set()
    crossings: set[tuple[int, int, int]] = set()
    parked: dict[int, int] = {}
    found: dict[int, tuple[int, ...]] = {}
    for agent in order:
        path = find_path(problem, agent, Taken(cells, crossings, parked))
        if path is None:
            return None
        found[agent] = path
        cells.update(enumerate(path))
        crossings.update((time, to, cell) for time, (cell, to) in enumerate(pairwise(path), 1))
        if not problem.vanish:
            parked[path[-1]] = len(path) - 1
    return tuple([found[agent] for agent in range(len(problem.starts))])


@lru_cache(maxsize=256)
def prioritized(problem: Problem, num_orders: int = 10) -> Plan | None:
    """Return the plan of the first order in which every agent finds a way (Erdmann and Lozano-Pérez 1987).

    The agents are tried in their own order, then in random ones, always the same. None does not mean that there is no
    plan.

    >>> prioritized(Problem(Grid(("#.#", "...")), (3, 5), (5, 3))) is None
    True
    """
    generator, agents = np.random.default_rng(0), list(range(len(problem.starts)))
    for number in range(num_orders):
        order = generator.permutation(len(agents)).tolist() if number else agents
        plan = plan_in_order(problem, order)
        if plan is not None:
            return plan
    return None


class Conflict(NamedTuple):
    """Two agents in one cell, or swapping cells.

    Args:
        time: When it happens.
        agents: Both.
        cells: The cell of each before and after; before is -1 for both in one cell.
    """

    time: int
    agents: tuple[int, int]
    cells: tuple[tuple[int, int], tuple[int, int]]


def conflicts(plan: Sequence[Sequence[int]], vanish: bool = False) -> list[Conflict]:
    """Return all collisions of a plan in order of time.

    >>> [each.time for each in conflicts(((0, 1, 2), (2, 1, 0)))], conflicts(((0, 1), (2, 2, 3)))
    ([1], [])
    """
    found = []
    last = max((len(path) for path in plan), default=0) - 1
    for time in range(last + 1):
        at: dict[int, list[int]] = {}
        came: dict[tuple[int, int], int] = {}
        for agent, path in enumerate(plan):
            if vanish and time >= len(path):
                continue
            cell = path[min(time, len(path) - 1)]
            for other in at.setdefault(cell, []):
                found.append(Conflict(time, (other, agent), ((-1, cell), (-1, cell))))
            at[cell].append(agent)
            before = path[min(time, len(path)) - 1] if time else cell
            if before != cell:
                other_way = came.get((cell, before))
                if other_way is not None:
                    found.append(Conflict(time, (other_way, agent), ((cell, before), (before, cell))))
                came[before, cell] = agent
    return found


class _Node(NamedTuple):
    paths: Plan
    cells: tuple[frozenset[tuple[int, int]], ...]
    crossings: tuple[frozenset[tuple[int, int, int]], ...]


@lru_cache(maxsize=256)
def conflict_based_search(problem: Problem, most_nodes: int = MOST_NODES) -> Plan | None:
    """Return a plan with the smallest sum of costs (Sharon et al. 2015).

    Args:
        problem: The problem.
        most_nodes: Nodes of the conflict tree after which the search gives up.

    Returns:
        The plan; None if there is none, or none was found within so many nodes.

    >>> ring = Problem(Grid(("....", ".##.", ".##.", "....")), (0, 3), (3, 0))
    >>> costs(conflict_based_search(ring))
    (12, 9)
    """
    agents = range(len(problem.starts))
    alone = [find_path(problem, agent) for agent in agents]
    paths = tuple([path for path in alone if path is not None])
    if len(paths) < len(alone) or (not problem.vanish and len(set(problem.goals)) < len(paths)):
        return None
    root = _Node(paths, tuple([frozenset()] * len(paths)), tuple([frozenset()] * len(paths)))
    queue = [(costs(paths)[0], len(conflicts(paths, problem.vanish)), 0, root)]
    made = 0
    while queue and made <= most_nodes:
        _, clashes, _, node = heappop(queue)
        if not clashes:
            return node.paths
        for child in _split(problem, node, conflicts(node.paths, problem.vanish)[0]):
            made += 1
            clashes = len(conflicts(child.paths, problem.vanish))
            heappush(queue, (costs(child.paths)[0], clashes, made, child))
    return None


def _split(problem: Problem, node: _Node, conflict: Conflict) -> Iterable[_Node]:
    """Yield the two nodes in which one of two agents avoids a conflict."""
    for agent, (before, cell) in zip(conflict.agents, conflict.cells, strict=True):
        cells, crossings = list(node.cells), list(node.crossings)
        if before < 0:
            cells[agent] |= {(conflict.time, cell)}
        else:
            crossings[agent] |= {(conflict.time, before, cell)}
        busy = {at for other, path in enumerate(node.paths) if other != agent for at in enumerate(path)}
        path = find_path(problem, agent, Taken(cells[agent], crossings[agent], busy=busy))
        if path is not None:
            paths = (*node.paths[:agent], path, *node.paths[agent + 1 :])
            yield _Node(paths, tuple(cells), tuple(crossings))
