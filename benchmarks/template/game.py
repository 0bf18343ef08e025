"""Treasure Hunt: dig for a hidden treasure; every hole tells how many steps away it is.

The treasure lies in one cell of a square field. Digging elsewhere tells the distance in steps: columns plus rows. This
file shows all that an environment has to say for itself; change it into your own game, and let the checker watch.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Annotated

import gymnasium
import numpy as np

from turngym.envs import Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

Cell = tuple[int, int]
"""Column and row, from 1."""

_ACTION = re.compile(r"\s*dig\s+([0-9]{1,3})\s+([0-9]{1,3})\s*", re.IGNORECASE)
_UNKNOWN = "Unknown action: answer with dig, column and row, for example: dig 1 2"


def distance(one: Cell, other: Cell) -> int:
    """Return how many steps it takes from one cell to another.

    >>> distance((1, 1), (3, 4))
    5
    """
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


@lru_cache(maxsize=64)
def cells(size: int) -> tuple[Cell, ...]:
    """Return all cells of a field, column by column."""
    return tuple((column, row) for column in range(1, size + 1) for row in range(1, size + 1))


def candidates(size: int, holes: dict[Cell, int]) -> list[Cell]:
    """Return the cells where the treasure can be, after what the holes have told.

    >>> candidates(8, {(1, 1): 2})
    [(1, 3), (2, 2), (3, 1)]
    """
    return [cell for cell in cells(size) if all(distance(cell, hole) == told for hole, told in holes.items())]


class TreasureHunt(TextEnv[str]):
    """A treasure in a field of cells, found by digging.

    The episode terminates when the treasure is dug up, which is the only success, and is truncated at ``max_turns``.

    >>> env = TreasureHunt()
    >>> observation, info = env.reset(seed=0)
    >>> env.step("dig 1 1")[0]
    'Nothing here. The treasure is 5 steps away.'
    """

    class Options(TextEnv.Options):
        """What can be chosen; the types are checked when an environment is made."""

        size: Annotated[int, between(8, 20)] = 8
        """Cells along each side of the field."""
        max_turns: Annotated[int, between(3, 100)] = 8
        """Turns after which the episode is truncated: two holes always tell the place."""

    options: Options

    file_options = worded()  # submissions may ask for its options where they are numbers, and for no texts

    def setup(self) -> None:
        """Prepare what follows from the options, which have been checked."""
        size = self.size = self.options.size
        self._actions = tuple(f"dig {column} {row}" for column, row in cells(size))
        self.instructions = (
            f"A treasure is hidden in a field of {size} columns and {size} rows, both counted from 1. "
            f"Dig it up in at most {self.max_turns} turns.\n"
            "An empty hole tells how many steps away the treasure is: columns plus rows.\n"
            "Answer with dig, column and row, for example: dig 1 2"
        )

    def begin(self, task: str | int | None) -> str:
        """Draw an instance and return the first observation."""
        if task is not None:
            raise ConfigError(f"{self.env_id} has no named tasks, got {task!r}: pick one by seed.")
        self._treasure = self.draw(self._random_cell, self._name)  # draws until the split is right
        self._holes: dict[Cell, int] = {}
        return f"A field of {self.size} columns and {self.size} rows. Nobody has dug here yet."

    def _random_cell(self, generator: np.random.Generator) -> Cell:
        return cells(self.size)[int(generator.integers(self.size**2))]

    def _name(self, treasure: Cell) -> str:
        return f"treasure at {treasure[0]} {treasure[1]} of {self.size}"

    def apply_action(self, action: str) -> Outcome[str]:
        """Answer any text: what is not understood costs a turn, and never raises."""
        match = _ACTION.fullmatch(action)
        cell = (int(match[1]), int(match[2])) if match else (0, 0)
        if not (1 <= cell[0] <= self.size and 1 <= cell[1] <= self.size):
            return Outcome(_UNKNOWN, action_is_valid=False)
        steps = distance(cell, self._treasure)
        self._holes[cell] = steps
        if steps == 0:
            return Outcome("You have found the treasure.", reward=1.0, terminated=True, success=True)
        return Outcome(f"Nothing here. The treasure is {steps} step{'s' if steps > 1 else ''} away.")

    def anchor(self) -> str:
        """Return the holes in order of place: how they came about makes no difference to what can be known."""
        return "; ".join(f"{column} {row}: {steps}" for (column, row), steps in sorted(self._holes.items()))

    def legal_actions(self) -> tuple[str, ...]:
        """Return every action that can be chosen now."""
        return self._actions

    def progress(self) -> float:
        """Return 0 while the treasure can be anywhere and 1 when one cell is left."""
        return 1 - math.log(len(candidates(self.size, self._holes))) / math.log(self.size**2)

    def render_text(self) -> str:
        """Return the field as a person wants to see it: a dot is untouched, a number tells the steps."""
        lines = []
        for row in range(1, self.size + 1):
            steps = [self._holes.get((column, row)) for column in range(1, self.size + 1)]
            lines.append("".join("  ." if told is None else "  *" if told == 0 else f"{told:3}" for told in steps))
        return "\n".join(lines)

    def save_state(self) -> JSONValue:
        """Return what a snapshot needs, as JSON can hold it."""
        return {"treasure": self._treasure, "holes": [[*cell, steps] for cell, steps in self._holes.items()]}

    def load_state(self, state: JSONValue) -> None:
        """Restore what ``save_state`` returned."""
        column, row = state["treasure"]
        self._treasure = column, row
        self._holes = {(column, row): steps for column, row, steps in state["holes"]}

    def resample_hidden(self) -> bool:
        """Hide the treasure in another cell that fits all holes; the checker looks for leaks with it."""
        others = [cell for cell in candidates(self.size, self._holes) if cell != self._treasure]
        if not others:
            return False
        self._treasure = others[int(self.np_random.integers(len(others)))]
        self.instance = self._name(self._treasure)
        return True

    def expert_action(self) -> str:
        """Dig at the first cell that is possible.

        That is the corner, then the end of the diagonal which the corner tells, and then only one cell is left.
        """
        column, row = candidates(self.size, self._holes)[0]
        return f"dig {column} {row}"


ENV_ID = "my/TreasureHunt-v0"
if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point=f"{__name__}:TreasureHunt",
        order_enforce=False,
        disable_env_checker=True,
        kwargs={"env_id": ENV_ID},
    )
