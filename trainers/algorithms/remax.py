"""ReMax: the return less that of the greedy policy on the same instance (Li et al. 2023, arXiv 2310.10505).

Each instance is played once more with greedy decoding. Those episodes are counted as turns of the run, and
not trained on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.reward_kl import RewardKLConfig, RewardKLMethod
from turngym.trainers.core.algorithm import Credit, Need, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class ReMaxConfig(RewardKLConfig):
    """Settings of ReMax."""

    reward_kl_coef: float = 0.05
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""


@ALGORITHMS.register("remax")
class ReMax(RewardKLMethod[ReMaxConfig]):
    """Policy gradient with the greedy policy's return as baseline."""

    Config: ClassVar[type[ReMaxConfig]] = ReMaxConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Needs of the method, and greedy episodes."""
        return super().needs | {Need.GREEDY}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the episodes of the iteration, each with the return of the greedy one on its instance."""
        sampled, greedy = rollout(), rollout(greedy=True)
        baselines = {_who(episode): episode.reward_sum for episode in greedy if not episode.fault}
        return [with_columns(episode, {"greedy_return": baselines.get(_who(episode), math.nan)}) for episode in sampled]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the greedy one and the KL divergence to come.

        It is 0, and counted, where the greedy return is not known.
        """
        baselines = table.numbers("episode", "greedy_return").to(table.reward.dtype)
        unknown = baselines.isnan()
        compared = (table.episode_return() - baselines.nan_to_num())[table.episode]
        advantages = table.to_tokens(compared - table.invalid_penalties(self.config.invalid_penalty))
        layout = F.TokenRows.of(table.episode[table.token_turn], table.num_episodes)
        costs = layout.pad(self.token_costs(table))
        to_come, _ = F.token_gae(costs, torch.zeros_like(costs), layout.mask, gamma=1.0, lam=1.0)
        metrics = {
            **self.kl_metrics(table),
            "episodes_without_baseline": float(unknown.sum()),
            "greedy_return": float(baselines[~unknown].mean()) if not bool(unknown.all()) else 0.0,
        }
        advantages = advantages - layout.unpad(to_come)
        return Credit(advantages.masked_fill(table.to_tokens(unknown[table.episode]), 0.0), metrics=metrics)


def _who(episode: Trajectory) -> tuple[int, int, str]:
    seats = sorted({turn.agent for turn in episode.turns})
    return episode.spec.group, episode.spec.seed, ",".join(seats) or episode.role
