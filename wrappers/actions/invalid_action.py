"""Penalties, notes and limits for invalid actions."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError, nearest
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import StepResult, TextWrapper
from turngym.wrappers.observation import text_of, with_text

_FEEDBACK = ("none", "note", "legal")


@WRAPPERS.register("invalid_action")
class InvalidAction(TextWrapper):
    """Subtracts a penalty from the reward of every invalid action and prepends a note to the observation.

    An action is invalid if the environment sets ``action_is_valid`` to False; its observation explains the error. With
    a limit, the note states the number of invalid actions left before the episode is truncated.

    Args:
        env: The environment.
        penalty: Subtracted from the reward of an invalid action.
        feedback: ``"none"``, ``"note"``, or ``"legal"`` for a note that lists the legal actions.
        max_in_row: Consecutive invalid actions after which the episode is truncated; None for no limit.
        max_total: The same for the whole episode.

    >>> import gymnasium, turngym
    >>> env = InvalidAction(gymnasium.make("turngym/TowerOfHanoi-v0"), feedback="legal", max_in_row=2)
    >>> _ = env.reset(seed=0)
    >>> observation, reward, *_ = env.step("jump")
    >>> reward, observation.split(chr(10))[:2]
    (-0.1, ['(That was no valid action. After 1 more in a row the episode ends.)', '(Legal actions: A B, A C)'])
    """

    file_options = worded("feedback")

    name: ClassVar[str] = "invalid_action"

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        penalty: float = 0.1,
        feedback: str = "note",
        max_in_row: int | None = None,
        max_total: int | None = None,
    ) -> None:
        super().__init__(env)
        self.require("penalty", penalty, 0, 1e6)
        if feedback not in _FEEDBACK:
            raise ConfigError(f"invalid_action has no feedback {feedback!r}. {nearest(str(feedback), _FEEDBACK)}")
        for option, limit in (("max_in_row", max_in_row), ("max_total", max_total)):
            if limit is not None:
                self.require(option, limit, 1, 1_000_000, whole=True)
        self.penalty = penalty
        self.feedback = feedback
        self.max_in_row = max_in_row
        self.max_total = max_total

    def initial_state(self) -> dict[str, Any]:
        return {"in_row": 0, "total": 0}

    @property
    def invalid_in_row(self) -> int:
        """Number of consecutive invalid actions so far."""
        return int(self.state["in_row"])

    @property
    def invalid_total(self) -> int:
        """Number of invalid actions in this episode."""
        return int(self.state["total"])

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        if step.info["action_is_valid"]:
            self.state["in_row"] = 0
            return step.reward, False
        self.state["in_row"] += 1
        self.state["total"] += 1
        left = self._left()
        return step.reward - self.penalty, left is not None and left[0] <= 0

    def _left(self) -> tuple[int, str] | None:
        """Return the number of invalid actions left, and the kind of limit; None without a limit."""
        left = [(self.max_total - self.state["total"], "")] if self.max_total is not None else []
        if self.max_in_row is not None:
            left.append((self.max_in_row - self.state["in_row"], " in a row"))
        return min(left, default=None)

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        if self.feedback == "none" or not self.state["in_row"]:
            return observation
        left = self._left()
        warning = f" After {left[0]} more{left[1]} the episode ends." if left and info["success"] < 0 else ""
        lines = [f"(That was no valid action.{warning})"]
        if self.feedback == "legal" and info["legal_actions"]:
            lines.append(f"(Legal actions: {', '.join(info['legal_actions'])})")
        return with_text(observation, "\n".join([*lines, text_of(observation)]))
