"""REINFORCE++: no groups and no critic, returns whitened over the tokens of the batch (Hu 2025, arXiv 2501.03262).

The return of a token is the discounted sum of the rewards from it to the end of its episode; rewards are assigned to
the last tokens of their turns, and observations between turns cost no discount.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.reward_kl import RewardKLConfig, RewardKLMethod
from turngym.trainers.algorithms.ppo import token_rewards
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class ReinforcePPConfig(RewardKLConfig):
    """Settings of REINFORCE++."""

    reward_kl_coef: float = 0.01
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""
    gamma: float = 1.0
    """Discount per sampled token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0, 1)


@ALGORITHMS.register("reinforce_pp")
class ReinforcePP(RewardKLMethod[ReinforcePPConfig]):
    """REINFORCE with returns of tokens, whitened over the batch."""

    Config: ClassVar[type[ReinforcePPConfig]] = ReinforcePPConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its return, shifted and scaled to mean 0 and variance 1 over the tokens of the batch."""
        rewards = token_rewards(table, self.penalised_rewards(table)) - self.token_costs(table)
        layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
        padded = layout.pad(rewards)
        returns, _ = F.token_gae(padded, torch.zeros_like(padded), layout.mask, gamma=self.config.gamma, lam=1.0)
        return Credit(F.whiten(layout.unpad(returns)), metrics=self.kl_metrics(table))
