"""PPO-max: PPO with rewards divided by their running deviation (Secrets of RLHF, Zheng et al. 2023, arXiv 2307.04964).

The scale of a reward then moves neither the critic's loss nor the weight of the KL term against it. Outliers are cut,
and the KL divergence from the reference policy is a part of the reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from turngym.agents.trajectory import Trajectory
from turngym.lazy import torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.ppo import PPO, PPOConfig
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class PPOMaxConfig(PPOConfig):
    """Settings of PPO-max; the discount is per token."""

    reward_kl_coef: float = 0.01
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""
    lam: float = 0.95
    """Decay of generalised advantage estimation: 1 gives return minus value, 0 the error of one time step."""
    value_clip: float = 0.2
    """Clip range of the value around its old value; 0 for no limit."""
    reward_clip: float = 10.0
    """Largest size of a turn's scaled reward."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("reward_clip", self.reward_clip, 1e-9)


class Moments(NamedTuple):
    """Moments of the returns so far.

    Args:
        number: Number of returns.
        mean: Their mean.
        squares: Sum of their squared differences from it.
    """

    number: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def after(self, values: Sequence[float]) -> Moments:
        """Return the moments with more returns.

        >>> moments = Moments().after([1.0, 3.0]).after([2.0, 2.0, 7.0])
        >>> moments.mean, round(moments.deviation, 6)
        (3.0, 2.345208)
        """
        if not values:
            return self
        count = self.number + len(values)
        mean = math.fsum(value / len(values) for value in values)
        gap = mean - self.mean
        squares = math.fsum((value - mean) * (value - mean) for value in values)
        between = gap * gap * self.number * len(values) / count
        return Moments(count, self.mean + gap * len(values) / count, self.squares + squares + between)

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 1 where returns do not differ."""
        found = math.sqrt(self.squares / (self.number - 1)) if self.number > 1 else 0.0
        return found if found > 1e-8 else 1.0


@ALGORITHMS.register("ppo_max")
class PPOMax(PPO):
    """Proximal policy optimisation over tokens, of rewards divided by their running deviation."""

    Config: ClassVar[type[PPOMaxConfig]] = PPOMaxConfig
    config: PPOMaxConfig

    def __init__(self, config: PPOMaxConfig) -> None:
        super().__init__(config)
        self.moments = Moments()

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as PPO does, from scaled rewards; none where the square of a return overflows."""
        moments, limit = self.moments.after(table.episode_return().tolist()), self.config.reward_clip
        if not math.isfinite(moments.squares):
            credit, moments = super().credit(replace(table, reward=torch.zeros_like(table.reward))), self.moments
            credit = replace(credit, advantages=torch.zeros_like(credit.advantages), returns=table.token_value)
        else:
            scaled = (table.reward / moments.deviation).clamp(-limit, limit)
            credit = super().credit(replace(table, reward=scaled))
        metrics = {**credit.metrics, "reward_deviation": moments.deviation}
        return replace(credit, metrics=metrics, state={**credit.state, "moments": moments})

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Keep the moments with the batch's returns."""
        self.moments = credit.state["moments"]

    def state(self) -> dict[str, Any]:
        """Return the moments, and the weight of the KL divergence where it is adapted."""
        return {**super().state(), "moments": list(self.moments)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the moments and the weight."""
        super().load_state(state)
        self.moments = Moments(*map(float, state["moments"]))
