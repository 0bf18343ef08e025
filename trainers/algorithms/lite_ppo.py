"""Lite PPO: returns are centred in their group and divided by the deviation of the batch (arXiv 2508.08221).

Part I: Tricks or Traps. The deviation of a group is small for tasks that are easy or hard, which GRPO then weighs up;
that of the batch is the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class LitePPOConfig(OutcomeConfig):
    """Settings of Lite PPO."""

    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("epsilon", self.epsilon, 0)


@ALGORITHMS.register("lite_ppo")
class LitePPO(OutcomeMethod[LitePPOConfig]):
    """Policy gradient with returns centred in their group and scaled over the batch."""

    Config: ClassVar[type[LitePPOConfig]] = LitePPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's mean, over the deviation of all returns."""
        returns, epsilon = table.episode_return(), self.config.epsilon
        centred = F.group_advantages(returns, table.episode_group, scale_by_std=False, singleton=self.config.singleton)
        deviation = float(returns.std()) if len(returns) > 1 else 0.0
        scaled = centred / (deviation + epsilon) if deviation > epsilon else centred
        return group_credit(table, scaled[table.episode], self.config)
