"""Doors: one of a few opens."""

from typing import Annotated

from turngym.envs import Outcome, TextEnv
from turngym.envs.core import MaxTurns
from turngym.envs.settings import worded
from turngym.options import between
from turngym.types import JSONValue


class Doors(TextEnv[str]):
    """A row of doors, one of which opens."""

    class Options(TextEnv.Options):
        doors: Annotated[int, between(2, 9)] = 4
        max_turns: MaxTurns = 9

    options: Options
    file_options = worded()

    def setup(self) -> None:
        doors = self.options.doors
        self._actions = tuple(f"open {number}" for number in range(1, doors + 1))
        self.finite_instances = doors
        self.instructions = f"One of {doors} doors opens. Answer with open and its number, such as: open 1"

    def begin(self, task: str | int | None) -> str:
        self._closed: set[str] = set()
        self._right = self.draw(lambda generator: self._actions[generator.integers(len(self._actions))], str)
        return f"There are {len(self._actions)} doors."

    def apply_action(self, action: str) -> Outcome[str]:
        if action not in self._actions:
            return Outcome("Answer with open and a number.", action_is_valid=False)
        if action == self._right:
            return Outcome("It opens.", reward=1.0, terminated=True, success=True)
        self._closed.add(action)
        return Outcome("It is locked.")

    def anchor(self) -> str:
        return f"locked: {sorted(self._closed)}"

    def legal_actions(self) -> tuple[str, ...]:
        return self._actions

    def save_state(self) -> JSONValue:
        return {"right": self._right, "closed": sorted(self._closed)}

    def load_state(self, state: JSONValue) -> None:
        self._right, self._closed = state["right"], set(state["closed"])

    def expert_action(self) -> str:
        return next(action for action in self._actions if action not in self._closed)
