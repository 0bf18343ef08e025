"""Environments for vectors with worker processes: importing this module imports no torch, which costs seconds."""

import os
import signal
from typing import Any

from toy_envs import Counter

from turngym.envs.core import Outcome, TextEnv
from turngym.errors import ExpertLost, SnapshotUnsupported
from turngym.types import JSONValue

POISON = "poison"


class Fork(TextEnv[str]):
    """Walk five steps; the solver of one episode in two loses its way after two."""

    def __init__(self, **options: object) -> None:
        super().__init__(env_id="Fork", max_turns=7)
        self.instructions = "Walk."

    def begin(self, task: str | int | None) -> str:
        self.steps, self.is_marked = 0, bool(self.np_random.integers(2))
        return "marked" if self.is_marked else "plain"

    def apply_action(self, action: str) -> Outcome[str]:
        if action != "walk":
            return Outcome("No.", action_is_valid=False)
        self.steps += 1
        return Outcome("On.", float(self.steps == 5), self.steps == 5, self.steps == 5)

    def progress(self) -> float:
        return self.steps / 5

    def anchor(self) -> str:
        return str(self.steps)

    def save_state(self) -> JSONValue:
        return [self.steps, self.is_marked]

    def load_state(self, state: JSONValue) -> None:
        self.steps, self.is_marked = state

    def expert_action(self) -> str:
        if self.is_marked and self.steps == 2:
            raise ExpertLost("the way is gone.")
        return "walk"


class Unsaved(Counter):
    """An environment that cannot save its state."""

    def snapshot(self) -> bytes:
        raise SnapshotUnsupported("a live web page cannot be saved")


class DiesWhenRestored(Counter):
    """An environment that takes its process along when the count is brought back to 1."""

    def load_state(self, state: JSONValue) -> None:
        if state["count"] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        super().load_state(state)


class Odd(TextEnv[str]):
    """Shows a text of its own from the second turn on, in episodes of an odd seed."""

    shown = POISON
    instructions = "Rules \udc00."

    def __init__(self, **options: Any) -> None:
        super().__init__(max_turns=3, **options)
        self._is_odd = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._is_odd = bool((seed or 0) % 2)
        return super().reset(seed=seed, options=options)

    def begin(self, task: str | int | None) -> str:
        self.instance = f"room \ud801 {self._is_odd}"
        return "a wall"

    def apply_action(self, action: str) -> Outcome[str]:
        return Outcome(self.shown if self._is_odd else "a door")

    def anchor(self) -> str:
        return self.shown if self._is_odd else "a door"

    def legal_actions(self) -> tuple[str, ...]:
        return (f"up{self.shown[-1]}",)

    def expert_action(self) -> str:
        return "up"

    def save_state(self) -> bool:
        return self._is_odd

    def load_state(self, state: Any) -> None:
        self._is_odd = state


class Surrogate(Odd):
    shown = "an output \ud800"
