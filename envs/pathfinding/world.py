"""State of agents that walk on a grid: positions, goals, arrivals and what each has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from turngym.envs.pathfinding.grid import FAR, Collision, Grid, advance, distances
from turngym.envs.pathfinding.planning import Problem

OnTarget: TypeAlias = Literal["nothing", "finish", "restart"]
"""Effect of an arrival: the agent stays in the game, vanishes, or gets another goal."""
UNSEEN = "?"
_TRIES = 30


class World:
    """Agents on a grid.

    Args:
        problem: Grid, starts and goals.
        on_target: Effect of an arrival.
        collision: Rule of collisions.
        radius: How many rows and columns an agent sees in each direction; None for the whole grid.
    """

    def __init__(self, problem: Problem, on_target: OnTarget, collision: Collision, radius: int | None) -> None:
        self.grid, self.on_target, self.collision, self.radius = problem.grid, on_target, collision, radius
        self.positions, self.goals = list(problem.starts), list(problem.goals)
        self.step = 0
        """Steps that are over."""
        count = len(self.positions)
        self.arrived = [0 if here == goal else -1 for here, goal in zip(self.positions, self.goals, strict=True)]
        """Step in which each agent came to its goal and did not leave since; -1 if it is not there."""
        self.reached = [0] * count
        """Goals that each agent has reached in ``restart``."""
        self.known = [UNSEEN * self.grid.size for _ in range(count)] if radius else []
        """Cells as each agent knows them, row by row, where it does not see all of them."""
        self._look()

    @property
    def active(self) -> list[int]:
        """The agents that are on the grid."""
        everyone = range(len(self.positions))
        return [agent for agent in everyone if self.on_target != "finish" or self.arrived[agent] < 0]

    @property
    def is_solved(self) -> bool:
        """Whether all agents are at their goals; never in ``restart``."""
        return self.on_target != "restart" and min(self.arrived) >= 0

    def window(self, agent: int) -> list[int]:
        """Return the cells that an agent sees now."""
        if not self.radius:
            return list(range(self.grid.size))
        row, column = self.grid.place(self.positions[agent])
        rows = range(max(0, row - self.radius), min(len(self.grid.rows), row + self.radius + 1))
        columns = range(max(0, column - self.radius), min(self.grid.width, column + self.radius + 1))
        return [each * self.grid.width + other for each in rows for other in columns]

    def seen(self, agent: int) -> list[int]:
        """Return the agents on the grid that an agent sees, itself included."""
        cells = set(self.window(agent))
        return [other for other in self.active if self.positions[other] in cells]

    def cells(self, agent: int) -> str:
        """Return the cells as an agent knows them, row by row."""
        return self.known[agent] if self.known else "".join(self.grid.rows)

    def _look(self) -> None:
        """Add what agents see now to what they know."""
        cells = "".join(self.grid.rows)
        for agent, known in enumerate(self.known):
            shown = list(known)
            for cell in self.window(agent):
                shown[cell] = cells[cell]
            self.known[agent] = "".join(shown)

    def move(self, moves: Sequence[str], generator: np.random.Generator) -> list[int]:
        """Take one step of all agents at once, and return those that have come to their goals in it.

        Args:
            moves: Move of every agent; those of agents that have vanished are ignored.
            generator: Draws the next goals in ``restart``.
        """
        active = self.active
        here = [self.positions[agent] for agent in active]
        wanted = [self.grid.after(self.positions[agent], moves[agent]) for agent in active]
        self.step += 1
        came = []
        for agent, cell in zip(active, advance(here, wanted, self.collision), strict=True):
            self.positions[agent] = cell
            if cell != self.goals[agent]:
                self.arrived[agent] = -1
            elif self.arrived[agent] < 0:
                came.append(agent)
                self.arrived[agent] = self.step
        if self.on_target == "restart":
            for agent in came:
                self.reached[agent] += 1
                self._renew(agent, generator)
        self._look()
        return came

    def _renew(self, agent: int, generator: np.random.Generator) -> None:
        """Draw another goal, which an agent can reach and no other one has."""
        away = distances(self.grid, self.positions[agent])
        fitting = [cell for cell in self.grid.free if 0 < away[cell] < FAR and cell not in self.goals]
        if fitting:
            self.goals[agent] = fitting[int(generator.integers(len(fitting)))]
            self.arrived[agent] = -1

    # Numbers.

    def costs(self) -> list[int]:
        """Return the arrival time of each agent, or the number of all steps so far."""
        return [self.step if time < 0 else time for time in self.arrived]

    def metrics(self) -> dict[str, float]:
        """Return the share of agents at their goals, whether all are, makespan, sum of costs and goals per step."""
        if self.on_target == "restart":
            return {"goals_per_step": sum(self.reached) / max(1, self.step)}
        there = sum(time >= 0 for time in self.arrived)
        return {
            "independent_success": there / len(self.arrived),
            "cooperative_success": float(self.is_solved),
            "makespan": float(max(self.costs())),
            "sum_of_costs": float(sum(self.costs())),
        }

    # What agents do not see.

    def swap_hidden(self, agent: int, generator: np.random.Generator, density: float) -> bool:
        """Draw again what an agent does not see: unseen cells, agents out of sight, and the goals of others.

        Returns:
            Whether anything changed.
        """
        before = self.state()
        if self.known:
            for _ in range(_TRIES):
                if self._try_swap(agent, generator, density):
                    return self.state() != before
                self.load(before)
        return False

    def _try_swap(self, agent: int, generator: np.random.Generator, density: float) -> bool:
        window, known = set(self.window(agent)), self.known[agent]
        walls = (generator.random(self.grid.size) < density).tolist()
        cells = ["#" if each == UNSEEN and wall else "." if each == UNSEEN else each
                 for each, wall in zip(known, walls, strict=True)]  # fmt: skip
        cells[self.goals[agent]] = "."
        width = self.grid.width
        self.grid = Grid(tuple(["".join(cells[start : start + width]) for start in range(0, len(cells), width)]))
        away = distances(self.grid, self.positions[agent])
        part = [cell for cell in self.grid.free if away[cell] < FAR]
        others = [other for other in self.active if other != agent]
        hidden = [other for other in others if self.positions[other] not in window]
        outside = [cell for cell in part if cell not in window]
        ends = [cell for cell in part if cell != self.goals[agent]]
        is_possible = away[self.goals[agent]] < FAR and len(outside) >= len(hidden) and len(ends) >= len(others)
        if not is_possible or any(away[self.positions[other]] == FAR for other in others if other not in hidden):
            return False
        for other, place in zip(hidden, generator.permutation(len(outside)).tolist(), strict=False):
            self.positions[other] = outside[place]
        for other, place in zip(others, generator.permutation(len(ends)).tolist(), strict=False):
            self.goals[other] = ends[place]
            self.arrived[other] = self.step if self.positions[other] == self.goals[other] else -1
        for other in range(len(self.known)):
            if other != agent:
                fresh = zip(self.known[other], cells, strict=True)
                self.known[other] = "".join([UNSEEN if old == UNSEEN else new for old, new in fresh])
        self._look()
        return not self.is_solved and (self.on_target != "finish" or all(self.arrived[other] < 0 for other in others))

    # States.

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as JSON can hold it."""
        return {
            "rows": list(self.grid.rows),
            "positions": list(self.positions),
            "goals": list(self.goals),
            "step": self.step,
            "arrived": list(self.arrived),
            "reached": list(self.reached),
            "known": list(self.known),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned.

        Raises:
            ValueError: It is not a state of such a world.
        """
        grid, count = Grid(tuple(state["rows"])), len(self.positions)
        require_grid(grid.rows)
        self.grid = grid
        for name in ("positions", "goals", "arrived", "reached"):
            numbers = state[name]
            if len(numbers) != count or not all(type(number) is int for number in numbers):
                raise ValueError(f"the {name} {numbers!r}")
            setattr(self, name, list(numbers))
        self.step, self.known = state["step"], list(state["known"])
        if type(self.step) is not int or self.step < 0:
            raise ValueError(f"the step {self.step!r}")
        if not set(self.positions + self.goals) <= set(grid.free):
            raise ValueError("an agent or a goal in a wall")
        cells = [self.positions[agent] for agent in self.active]
        if len(set(cells)) < len(cells):
            raise ValueError("two agents in one cell")
        for here, goal, time in zip(self.positions, self.goals, self.arrived, strict=True):
            if (time < 0) == (here == goal) or not -1 <= time <= self.step:
                raise ValueError(f"an arrival in step {time}")
        most = self.step if self.on_target == "restart" else 0
        if not 0 <= min(self.reached) <= max(self.reached) <= most:
            raise ValueError(f"the goals reached {self.reached!s:.80}")
        if len(set(self.goals)) < count and self.on_target != "finish":
            raise ValueError("two agents with one goal")
        if len(self.known) != (count if self.radius else 0):
            raise ValueError("the cells known")
        symbols = "".join(grid.rows)
        for agent, known in enumerate(self.known):
            pairs = zip(known, symbols, strict=True)
            if len(known) != len(symbols) or any(old not in (UNSEEN, new) for old, new in pairs):
                raise ValueError("cells that are known otherwise than they are")
            if any(known[cell] == UNSEEN for cell in self.window(agent)):
                raise ValueError("cells that are seen and not known")


def require_grid(rows: Sequence[Any]) -> None:
    """Raise unless rows are a grid of at most 32 rows and columns.

    Raises:
        ValueError: They are none.
    """
    is_grid = 0 < len(rows) <= 32 and all(isinstance(row, str) and 0 < len(row) <= 32 for row in rows)
    if not is_grid or len(set(map(len, rows))) > 1 or not set("".join(rows)) <= {".", "#"}:
        raise ValueError(f"the rows {rows!s:.80}")
