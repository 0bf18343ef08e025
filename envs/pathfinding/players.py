"""Players of path finding: those who plan for all, and those who walk their own way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from turngym.envs.multiagent.players import SILENCE, Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.pathfinding.grid import FAR, Grid, distances, steps
from turngym.envs.pathfinding.planning import Plan, Problem, conflict_based_search, prioritized
from turngym.envs.pathfinding.text import VANISHES, Sight
from turngym.types import JSONValue


class Walker(Player):
    """Base of players that read what they see and go to a cell next to theirs."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a move; nothing worth hearing while seats talk."""
        if not view.legal_actions:
            return SILENCE
        sight = Sight.of(view.anchor)
        grid = Grid(tuple([row.replace("?", ".") for row in sight.rows]))
        return grid.move(sight.here, self.target(sight, grid))

    @abstractmethod
    def target(self, sight: Sight, grid: Grid) -> int:
        """Return the cell to go to."""


class Greedy(Walker):
    """Follows a shortest path to its goal, and waits where another player blocks it."""

    name = "greedy"

    def target(self, sight: Sight, grid: Grid) -> int:
        """Return the next cell of a shortest way."""
        left = distances(grid, sight.goal)
        return min(steps(grid)[sight.here], key=lambda cell: left[cell])


class Planner(Walker):
    """Plans for all players by conflict-based search, by priorities where that takes too long, and follows the plan.

    Every seat finds the same plan, so nothing need be said. Where it does not see the whole grid, it goes along a
    shortest way around the players that it sees, through what it has not seen as if that were free, and sometimes steps
    aside at random.
    """

    name = "planner"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Forget the plan, and find out who stays at its goal."""
        super().begin(view, generator)
        self._plan: Plan = ()
        self._time = 0
        self._vanish = VANISHES in view.instructions

    def target(self, sight: Sight, grid: Grid) -> int:
        """Return the next cell of the plan, which is made again where things have gone another way."""
        if "?" in "".join(sight.rows) or any(goal < 0 for _, goal in sight.others.values()):
            return self._alone(sight, grid)
        everyone = {**sight.others, sight.seat: (sight.here, sight.goal)}
        order = sorted(everyone)
        problem = Problem(
            grid,
            tuple([everyone[seat][0] for seat in order]),
            tuple([everyone[seat][1] for seat in order]),
            self._vanish,
        )
        self._time += 1
        if not self._fits(problem):
            self._plan, self._time = self.solve(problem) or (), 1
        if not self._plan:
            return self._alone(sight, grid)
        path = self._plan[order.index(sight.seat)]
        cell = path[min(self._time, len(path) - 1)]
        return cell if cell in steps(grid)[sight.here] else self._alone(sight, grid)

    def _fits(self, problem: Problem) -> bool:
        """Return whether the plan leads here and to these goals."""
        if len(self._plan) != len(problem.starts):
            return False
        now = [path[min(self._time - 1, len(path) - 1)] for path in self._plan]
        return now == list(problem.starts) and [path[-1] for path in self._plan] == list(problem.goals)

    def solve(self, problem: Problem) -> Plan | None:
        """Return a plan for all."""
        return conflict_based_search(problem) or prioritized(problem)

    def _alone(self, sight: Sight, grid: Grid) -> int:
        """Return the next cell of a shortest way around the others."""
        self._plan = ()
        near = [cell for cell in steps(grid)[sight.here] if cell not in _cells(sight)]
        around = _without(grid, _cells(sight))
        left = distances(around, sight.goal)
        if left[sight.here] == FAR or self._random() < 0.1:
            return near[int(self._random() * len(near))]
        return min(near, key=lambda cell: left[cell])

    def state(self) -> JSONValue:
        """Return the plan and its time."""
        return [[list(path) for path in self._plan], self._time]

    def load(self, state: JSONValue) -> None:
        """Bring back what :meth:`state` returned.

        Raises:
            ValueError: It is not a plan.
        """
        plan, time = state
        paths = tuple([tuple(path) for path in plan])
        if type(time) is not int or time < 0 or not all(path and {*map(type, path)} == {int} for path in paths):
            raise ValueError(f"the time {time!r} of a plan of {len(paths)} paths")
        self._plan, self._time = paths, time


class Prioritized(Planner):
    """Plans for all players by priorities (prioritised planning), and follows the plan."""

    name = "prioritized"

    def solve(self, problem: Problem) -> Plan | None:
        """Return a plan for all."""
        return prioritized(problem)


def _cells(sight: Sight) -> list[int]:
    return [cell for cell, _ in sight.others.values()]


def _without(grid: Grid, cells: Sequence[int]) -> Grid:
    """Return a grid in which cells are walls."""
    symbols = list("".join(grid.rows))
    for cell in cells:
        symbols[cell] = "#"
    return Grid(tuple(["".join(symbols[start : start + grid.width]) for start in range(0, grid.size, grid.width)]))
