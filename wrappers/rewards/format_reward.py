"""Rewards of well-formed completions."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.actions.action_format import action_format
from turngym.wrappers.core import StepResult, TextWrapper


@WRAPPERS.register("format_reward")
class FormatReward(TextWrapper):
    """Adds a bonus if the completion contains an action, and subtracts a penalty if not.

    The checked text is the one that reaches this wrapper, so apply it outside ``parse_action``:
    ``wrap(env, "parse_action", "format_reward")``. Inside, it would penalise every action.

    Args:
        env: The environment.
        format: Name of the format: ``tag``, ``boxed``, ``json`` or ``plain``.
        bonus: Added to the reward of a turn with a well-formed completion.
        penalty: Subtracted from the reward of every other turn.

    >>> import gymnasium, turngym
    >>> env = FormatReward(gymnasium.make("turngym/TowerOfHanoi-v0"), bonus=0.1, penalty=0.5)
    >>> _ = env.reset(seed=0)
    >>> env.step("<action>A C</action>")[1], env.step("A C")[1]
    (0.1, -0.5)
    """

    file_options = worded("format")

    name: ClassVar[str] = "format_reward"

    def __init__(
        self, env: gymnasium.Env[Any, str], format: str = "tag", bonus: float = 0.0, penalty: float = 0.1
    ) -> None:
        super().__init__(env)
        self.format = action_format(format)
        self.require("bonus", bonus, 0, 1e6)
        self.require("penalty", penalty, 0, 1e6)
        self.bonus = bonus
        self.penalty = penalty

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        is_well_formed = self.format.read(step.action) is not None
        return step.reward + (self.bonus if is_well_formed else -self.penalty), False
