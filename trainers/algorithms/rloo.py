"""RLOO: the return less the mean return of the other episodes of the group (Ahmadian et al. 2024, arXiv 2402.14740).

The baseline of an episode does not depend on its own actions, so the estimate is unbiased; it is the centred return of
the group times ``n / (n - 1)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.reward_kl import RewardKLConfig, RewardKLMethod
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class RLOOConfig(RewardKLConfig, OutcomeConfig):
    """Settings of RLOO."""

    reward_kl_coef: float = 0.05
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""


@ALGORITHMS.register("rloo")
class RLOO(RewardKLMethod[RLOOConfig], OutcomeMethod[RLOOConfig]):
    """Policy gradient with a leave-one-out baseline."""

    Config: ClassVar[type[RLOOConfig]] = RLOOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the mean of the others', and what the turn's action costs."""
        returns = table.episode_return() - table.episode_sum(self.turn_costs(table))
        baselines = F.leave_one_out_baselines(returns, table.episode_group, singleton=self.config.singleton)
        credit = group_credit(table, (returns - baselines)[table.episode], self.config)
        return replace(credit, metrics={**credit.metrics, **self.kl_metrics(table)})
