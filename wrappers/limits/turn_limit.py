"""A lower turn limit."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import StepResult, TextWrapper


@WRAPPERS.register("turn_limit")
class TurnLimit(TextWrapper):
    """Truncates an episode after ``limit`` turns, unless the rules end it in that turn.

    Args:
        env: The environment; its own limit still applies if it is lower.
        limit: Turns, at least 1.

    >>> import gymnasium, turngym
    >>> env = TurnLimit(gymnasium.make("turngym/TowerOfHanoi-v0"), limit=1)
    >>> _ = env.reset(seed=0)
    >>> env.step("A C")[2:4], env.max_turns
    ((False, True), 1)
    """

    file_options = worded()

    name: ClassVar[str] = "turn_limit"

    def __init__(self, env: gymnasium.Env[Any, str], limit: int = 20) -> None:
        super().__init__(env)
        self.require("limit", limit, 1, 100_000, whole=True)
        self.limit = limit

    @property
    def max_turns(self) -> int:
        """Turns after which an unfinished episode is truncated."""
        return min(self.limit, super().max_turns)

    def initial_state(self) -> dict[str, Any]:
        return {"turns": 0}

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        self.state["turns"] += 1
        return step.reward, self.state["turns"] >= self.limit

    def extra_instructions(self) -> str:
        return f"The episode ends after {self.max_turns} turns."
