"""Path finding of several agents as a game for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.speech import quoted, safe_speech
from turngym.envs.pathfinding import text
from turngym.envs.pathfinding.grid import MOVES, Collision, Grid
from turngym.envs.pathfinding.layouts import Layout, draw_problem
from turngym.envs.pathfinding.planning import Problem
from turngym.envs.pathfinding.world import OnTarget, World, require_grid
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import first_object, read_choice
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

SILENT = "silent"
_SAY = "say "
_PLAYERS = "turngym.envs.pathfinding.players"
_FIXED = ("map", "starts", "goals")
_MEANINGS = {form: move for move in MOVES for form in (move, f"go {move}", f"move {move}", f"i go {move}")} | {
    form: "stay" for form in ("wait", "i stay", "i wait")
}


def _cell(grid: Grid, row: int, column: int) -> int:
    if not (type(row) is type(column) is int and 0 <= row < len(grid.rows) and 0 <= column < grid.width):
        raise ValueError(f"the cell {row}, {column}")
    return row * grid.width + column


class PathFinding(Game):
    """Multi-agent path finding on a grid: all seats move at once, without collisions, each to its own goal.

    The contract is that of POGEMA 1.4.0 (Skrynnik et al. 2022) with its names of options. With ``nothing`` all seats
    get 1 when all are at their goals at once; with ``finish`` a seat gets 1 on arrival and leaves the grid; with
    ``restart`` it gets 1 and another goal (lifelong). Every move is legal: one into a wall or another seat does
    nothing. The score of a seat is 1 if it is at its goal in the end, with ``restart`` its goals per step. Metrics:
    independent success (share of seats at their goals), cooperative success (all are), makespan, sum of costs. A seat
    that forfeits stays where it is. Grids are drawn until prioritised planning finds a plan. The anchor is what a seat
    sees, with what it has heard in this step.

    >>> game = PathFinding(num_seats=2)
    >>> cells = {"starts": [[1, 0], [1, 2]], "goals": [[1, 1], [0, 1]]}
    >>> game.begin(np.random.default_rng(0), {"map": ["#.#", "..."], **cells})
    >>> game.commit({0: "stay", 1: "left"}), game.commit({0: "right", 1: game.read(1, "I go [up]")})
    ([0.0, 0.0], [1.0, 1.0])
    """

    name = "path_finding"
    is_cooperative = True
    file_options = worded()
    is_simultaneous = True
    players: ClassVar[Mapping[str, str]] = {
        "planner": f"{_PLAYERS}:Planner",
        "prioritized": f"{_PLAYERS}:Prioritized",
        "greedy": f"{_PLAYERS}:Greedy",
    }

    class Options(BaseOptions):
        num_seats: Annotated[int, between(1, 10)] = 4
        """Number of seats."""
        size: Annotated[int, between(3, 16)] = 8
        """Rows and columns of the grid; a maze has an odd number."""
        layout: Layout = "random"
        """Single walls at random, a maze with loops, or rooms of three by three cells with doors."""
        density: Annotated[float, between(0, 0.5)] = 0.2
        """Probability of a wall in a random grid."""
        radius: Annotated[int, between(1, 8)] | None = None
        """Rows and columns that a seat sees in each direction; None for the whole grid, with the goals of all."""
        talk: bool = False
        """Whether seats say something before each step, to those who see them."""
        on_target: OnTarget = "nothing"
        """Effect of an arrival: none, or the seat leaves the grid (finish), or it gets another goal (restart)."""
        collision: Collision = "soft"
        """Rule of collisions: soft allows seats to follow each other, also in a circle."""
        max_steps: Annotated[int, between(1, 200)] = 64
        """Steps of a game."""

        def check(self) -> None:
            most = self.size**2 // 6
            if self.num_seats > most:
                raise OptionError("num_seats", f"must be at most {most} on {self.size} rows, got {self.num_seats}.")

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(self.options.num_seats)
        self._generator = np.random.default_rng(0)
        self._heard: list[list[str]] = [[] for _ in self.everyone]
        self._is_talking = self.options.talk
        seats = range(self.num_seats)
        blank = Grid(("." * (self.num_seats + 1),))
        self.world = self._world(Problem(blank, tuple(seats), tuple(seat + 1 for seat in seats)))

    _constructor = __init__

    def _world(self, problem: Problem) -> World:
        return World(problem, self.options.on_target, self.options.collision, self.options.radius)

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        chosen = self.options
        return text.instructions(
            chosen.num_seats, chosen.max_steps, chosen.on_target, chosen.collision, chosen.radius, chosen.talk
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw a grid; ``{"map": ["..#", ...], "starts": [[row, column], ...], "goals": [...]}`` fixes it."""
        chosen = self.options
        self.require_known(options, _FIXED)
        problem = self._fixed(options) if options else draw_problem(
            generator,
            chosen.layout,
            chosen.size,
            chosen.density,
            chosen.num_seats,
            vanish=chosen.on_target == "finish",
            most_steps=chosen.max_steps,
        )  # fmt: skip
        if problem is None:
            raise ConfigError(
                f"{self.name} found no grid with a plan for {self.num_seats} seats in {chosen.max_steps} steps: take a "
                "larger size, fewer seats, a smaller density or more steps."
            )
        self.news.clear()
        self._generator = generator
        self.world = self._world(problem)
        self._heard = [[] for _ in self.everyone]
        self._is_talking = chosen.talk
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}.")

    def _fixed(self, options: Mapping[str, Any]) -> Problem:
        """Return the problem that options fix.

        Raises:
            ConfigError: They fix none.
        """
        try:
            rows = tuple(options["map"])
            require_grid(rows)
            grid = Grid(rows)
            starts, goals = [tuple([_cell(grid, *place) for place in options[key]]) for key in _FIXED[1:]]
            ends = len(set(goals)) == len(goals) or self.options.on_target == "finish"
            is_fit = len(set(starts)) == len(starts) == len(goals) == self.num_seats and ends
            is_there = self.options.on_target == "restart" and any(map(int.__eq__, starts, goals))
            if is_there or not (is_fit and {*starts, *goals} <= set(grid.free)):
                raise ValueError("starts and goals")
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{self.name} takes map, starts and goals together: rows of . and #, and [row, column] of a free cell "
                f"for each of {self.num_seats} seats, each another one, in restart not at its goal; got "
                f"{dict(options)!s:.120}."
            ) from error
        return Problem(grid, starts, goals, self.options.on_target == "finish")

    # Decisions.

    @property
    def _is_over(self) -> bool:
        return self.world.step >= self.options.max_steps or self.world.is_solved

    def phase(self) -> str:
        """Return ``"talk"`` or ``"move"``."""
        return "talk" if self._is_talking else "move"

    def is_speech(self, seat: int) -> bool:
        """Return whether the seats talk."""
        return self._is_talking

    def asked(self) -> tuple[int, ...]:
        """Return all seats that are on the grid."""
        return () if self._is_over else tuple(self.world.active)

    def prompt(self, seat: int) -> str:
        """Return what the seat sees, and the question."""
        question = "What do you say?" if self._is_talking else f"{', '.join(MOVES)}?"
        return f"{text.view(self.world, seat, self.options.max_steps)}\n{question}"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return all moves; nothing while the seats talk."""
        return () if self._is_talking else tuple(MOVES)

    def read(self, seat: int, text: str) -> str:
        """Return the move that an answer names, or ``"say ..."`` with whatever was said."""
        if not self._is_talking:
            return read_choice(text, _MEANINGS)
        found = first_object(text[:10_000]) if text.lstrip().startswith("{") else None
        said = found.get("message") if found else None
        speech = safe_speech(said if isinstance(said, str) else text.removeprefix(_SAY))
        return f"{_SAY}{speech}" if speech and text != SILENT else SILENT

    def default(self, seat: int) -> str:
        """Return what a seat that has forfeited does: nothing."""
        return SILENT if self._is_talking else "stay"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Deliver what was said, or take a step."""
        if self._is_talking:
            self._deliver(actions)
            self._is_talking = False
            return [0.0] * self.num_seats
        before = list(self.world.positions)
        moves = [actions.get(seat, "stay") for seat in self.everyone]
        came = self.world.move(moves, self._generator)
        for seat in actions:
            if moves[seat] != "stay" and self.world.positions[seat] == before[seat]:
                self.tell((seat,), f"You could not go {moves[seat]}.")
        for seat in came:
            if self.options.on_target != "nothing":
                self.tell((seat,), "You came to your goal.")
        self._heard = [[] for _ in self.everyone]
        self._is_talking = self.options.talk
        if self._is_over:
            self.tell(self.everyone, self._ending())
        if self.options.on_target == "nothing":
            return [float(self.world.is_solved)] * self.num_seats
        return [float(seat in came) for seat in self.everyone]

    def _deliver(self, actions: Mapping[int, str]) -> None:
        """Let seats hear what those whom they see say."""
        for seat, action in actions.items():
            if action != SILENT:
                line = quoted(self.seats[seat], action.removeprefix(_SAY))
                hearers = [other for other in self.world.active if seat in self.world.seen(other)]
                self.tell(hearers, line)
                for other in hearers:
                    self._heard[other].append(line)

    def _ending(self) -> str:
        if self.options.on_target == "restart":
            return f"The game is over: {sum(self.world.reached)} goals were reached."
        there = sum(time >= 0 for time in self.world.arrived)
        return (
            f"The game is over after {self.world.step} steps: {there} of {self.num_seats} players came to their goals."
        )

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return what the seat sees, and has heard in this step."""
        return "\n".join([text.view(self.world, seat, self.options.max_steps), *self._heard[seat]])

    def progress(self, seat: int) -> float:
        """Return the share of the steps that are over; 1 at the end."""
        if self._is_over:
            return 1.0
        said = self.options.talk and not self._is_talking
        return (self.world.step + said / 2) / self.options.max_steps

    def winners(self) -> tuple[int, ...]:
        """Return all seats once all are at their goals; with ``restart`` once each has come to one."""
        world = self.world
        is_won = world.is_solved or (self.options.on_target == "restart" and self._is_over and min(world.reached) > 0)
        return self.everyone if is_won else ()

    def score(self, seat: int) -> float:
        """Return 1 for a seat that is at its goal, else 0; with ``restart`` its goals per step."""
        if seat in self.forfeited:
            return 0.0
        if self.options.on_target == "restart":
            return self.world.reached[seat] / self.options.max_steps
        return float(self.world.arrived[seat] >= 0)

    def metrics(self) -> dict[str, float]:
        """Return independent and cooperative success, makespan and sum of costs; with ``restart`` goals per step."""
        return self.world.metrics()

    def state(self) -> JSONValue:
        """Return the world, and what was said."""
        return {**self.world.state(), "heard": [list(lines) for lines in self._heard], "is_talking": self._is_talking}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        self.world.load(state)
        heard = [[str(line) for line in lines] for lines in state["heard"]]
        if len(heard) != self.num_seats or self.world.step > self.options.max_steps:
            raise ValueError(f"{len(heard)} seats in step {self.world.step}")
        self._heard, self._is_talking = heard, state["is_talking"] is True
        has_talked = self.options.talk and not self._is_talking
        if (self._is_talking and not self.options.talk) or (any(heard) and not has_talked):
            raise ValueError(f"is_talking {self._is_talking} with {sum(map(len, heard))} lines heard")

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw again what a seat does not see: unseen cells, seats out of sight, goals of others."""
        return not self._is_over and self.world.swap_hidden(seat, generator, self.options.density)
