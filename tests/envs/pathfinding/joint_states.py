"""Optimal plans by search over the states of all agents together, for tests of planners on small grids."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import product

from turngym.envs.pathfinding.grid import steps
from turngym.envs.pathfinding.planning import Problem


def optimum(problem: Problem) -> int | None:
    """Return the smallest sum of costs, None if there is no plan (Dijkstra over cells and who has stopped).

    An agent at its goal may stop for good at any time; it pays for every step before.
    """
    agents = range(len(problem.starts))
    start = problem.starts, (False,) * len(problem.starts)
    best = {start: 0}
    queue = [(0, start)]
    while queue:
        cost, (cells, stopped) = heappop(queue)
        if cost > best[cells, stopped]:
            continue
        if all(stopped):
            return cost
        at_goal = [cells[agent] == problem.goals[agent] for agent in agents]
        for stop in product(*[(True,) if stopped[a] else (False, True) if at_goal[a] else (False,) for a in agents]):
            step = sum(not each for each in stop)
            near = [(cells[a],) if stop[a] else steps(problem.grid)[cells[a]] for a in agents]
            for after in product(*near):
                on_grid = [a for a in agents if not (problem.vanish and stop[a])]
                taken = {after[a] for a in on_grid}
                swaps = {(cells[a], after[a]) for a in on_grid if cells[a] != after[a]}
                if len(taken) < len(on_grid) or any((to, here) in swaps for here, to in swaps):
                    continue
                if cost + step < best.get((after, stop), cost + step + 1):
                    best[after, stop] = cost + step
                    heappush(queue, (cost + step, (after, stop)))
    return None
