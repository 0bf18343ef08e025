"""Potential-based shaping with progress, which keeps the optimal policy (Ng, Harada and Russell 1999)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError, nearest
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper

ZERO_WHEN = ("terminated", "over", "never")


def potential(progress: float, scale: float) -> float:
    """Return the potential of a state: its progress times ``scale``, 0 if unknown.

    >>> potential(0.5, 2.0), potential(float("nan"), 2.0)
    (1.0, 0.0)
    """
    return 0.0 if math.isnan(progress) else scale * progress


@WRAPPERS.register("progress_reward")
class ProgressReward(TextWrapper):
    """Adds ``gamma * phi(next) - phi(current)`` to every reward, where phi is ``scale`` times ``info["progress"]``.

    The potential of a terminal state is 0. The discounted sum of the added rewards is then ``-phi(start)`` for every
    policy, so the order of policies is unchanged. The potential of a truncated state is its progress, which suits a
    critic that bootstraps there. For methods that treat truncated episodes as finished, such as GRPO,
    ``zero_when="over"`` keeps the order of policies. With ``"never"`` the added rewards sum to the progress made: a
    bonus, which may change the optimal policy. Limits of outer wrappers are not visible here: apply ``turn_limit``
    inside.

    Args:
        env: The environment.
        gamma: The trainer's discount per turn, in [0, 1].
        scale: Potential of a solved task, at least 0.
        zero_when: Condition for a potential of 0 after a turn: ``"terminated"``, ``"over"`` or ``"never"``.

    >>> import gymnasium, turngym
    >>> env = ProgressReward(gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=3))
    >>> _ = env.reset(seed=1)
    >>> progress = env.step("5")[4]["progress"]  # an invalid guess, no progress
    >>> progress, env.step("5")[1]
    (0.0, 0.0)
    """

    file_options = worded("zero_when")

    name: ClassVar[str] = "progress_reward"

    def __init__(
        self, env: gymnasium.Env[Any, str], gamma: float = 1.0, scale: float = 1.0, zero_when: str = "terminated"
    ) -> None:
        super().__init__(env)
        self.require("gamma", gamma, 0, 1)
        self.require("scale", scale, 0, 1e6)
        if zero_when not in ZERO_WHEN:
            raise ConfigError(f"progress_reward has no zero_when {zero_when!r}. {nearest(str(zero_when), ZERO_WHEN)}")
        self.gamma = gamma
        self.scale = scale
        self.zero_when = zero_when

    def initial_state(self) -> dict[str, Any]:
        return {"potential": 0.0}

    def on_reset(self, result: ResetResult) -> None:
        self.state["potential"] = potential(result.info["progress"], self.scale)

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        before = self.state["potential"]
        is_zero = {"terminated": step.terminated, "over": step.is_over, "never": False}[self.zero_when]
        after = 0.0 if is_zero else potential(step.info["progress"], self.scale)
        self.state["potential"] = after
        return step.reward + self.gamma * after - before, False
