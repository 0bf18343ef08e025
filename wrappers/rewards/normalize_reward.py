"""Normalisation of rewards by a running standard deviation of the discounted return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import StepResult, TextWrapper

_SMALLEST = 1e-8


class Moments(NamedTuple):
    """Running moments: count, mean, and sum of squared differences from the mean."""

    size: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_value(self, value: float) -> Moments:
        """Return the moments with one more number (Welford 1962).

        >>> Moments().with_value(1.0).with_value(2.0)
        Moments(size=2, mean=1.5, squares=0.5)
        """
        size = self.size + 1
        mean = self.mean + (value - self.mean) / size
        return Moments(size, mean, self.squares + (value - self.mean) * (value - mean))

    @property
    def scale(self) -> float:
        """Population standard deviation; 1 if undefined or almost 0."""
        deviation = math.sqrt(self.squares / self.size) if self.size > 1 else 0.0
        return deviation if deviation > _SMALLEST else 1.0


@WRAPPERS.register("normalize_reward")
class NormalizeReward(TextWrapper):
    """Divides every reward by the standard deviation of the discounted sums of rewards up to each turn.

    The sum starts at 0 with each episode; the statistics continue across episodes, are separate for each environment,
    and are saved in its snapshots. The reward of a turn therefore depends on earlier episodes: freeze the statistics if
    episodes must be reproducible (evaluation) or are compared with each other (groups in training), because every slot
    of a vector has its own. Non-finite rewards are passed on and not counted.

    Args:
        env: The environment.
        gamma: Discount per turn, in [0, 1].
        clip: Maximum absolute value of a normalised reward; None for no limit.
        frozen: Freeze the statistics; the attribute can also be set later.

    >>> import gymnasium, turngym
    >>> env = NormalizeReward(gymnasium.make("turngym/FrozenLake-v0"), frozen=True)
    >>> env.statistics = {"size": 2, "mean": 0.0, "squares": 0.5}
    >>> env.scale
    0.5
    """

    file_options = worded()

    name: ClassVar[str] = "normalize_reward"
    unchecked: ClassVar[frozenset[str]] = frozenset({"frozen"})

    def __init__(
        self, env: gymnasium.Env[Any, str], gamma: float = 0.99, clip: float | None = 10.0, frozen: bool = False
    ) -> None:
        super().__init__(env)
        self.require("gamma", gamma, 0, 1)
        if clip is not None:
            self.require("clip", clip, 1e-6, 1e9)
        self.gamma = gamma
        self.clip = clip
        self.frozen = frozen
        self.lasting = Moments()._asdict()

    def initial_state(self) -> dict[str, Any]:
        return {"sum": 0.0}

    @property
    def statistics(self) -> dict[str, float]:
        """Size, mean and squares of :class:`Moments`; can be set, to transfer them to another environment."""
        return dict(self.lasting)

    @statistics.setter
    def statistics(self, value: Mapping[str, float]) -> None:
        try:
            moments = Moments(int(value["size"]), float(value["mean"]), float(value["squares"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"statistics must hold size, mean and squares, got {value!r}.") from error
        if moments.size < 0 or not math.isfinite(moments.mean) or not 0 <= moments.squares < math.inf:
            raise ConfigError(f"statistics must be finite and not negative, got {value!r}.")
        self.lasting = moments._asdict()

    @property
    def scale(self) -> float:
        """The current divisor of rewards."""
        return Moments(**self.lasting).scale

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        if not math.isfinite(step.reward):
            return step.reward, False  # neither counted nor clipped, to keep it visible
        self.state["sum"] = self.gamma * self.state["sum"] + step.reward
        if not self.frozen:
            self.lasting = Moments(**self.lasting).with_value(self.state["sum"])._asdict()
        reward = step.reward / self.scale
        return (reward if self.clip is None else max(-self.clip, min(self.clip, reward))), False
