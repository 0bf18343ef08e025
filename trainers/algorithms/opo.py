"""OPO: the return less the length-weighted mean return of the group (Hao et al. 2025, arXiv 2505.23585).

The baseline of least variance weighs an episode by the squared norm of its gradient; that norm grows with the number of
tokens, which approximates it here. Meant to be run exactly on-policy: one update on a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class OPOConfig(OutcomeConfig):
    """Settings of OPO."""


@ALGORITHMS.register("opo")
class OPO(OutcomeMethod[OPOConfig]):
    """Policy gradient with the optimal baseline for lengths."""

    Config: ClassVar[type[OPOConfig]] = OPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's baseline, and what the turn's action costs."""
        lengths = table.episode_sum(table.num_tokens.to(table.reward.dtype))
        returns = table.episode_return()
        baselines = F.length_weighted_baselines(returns, lengths, table.episode_group, singleton=self.config.singleton)
        return group_credit(table, (returns - baselines)[table.episode], self.config)
