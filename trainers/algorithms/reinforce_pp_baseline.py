"""REINFORCE++-baseline: the return less the group's mean, whitened over the tokens of the batch (arXiv 2501.03262).

Unlike in GRPO the deviation is that of the whole batch, so that differences in a group of nearly equal returns are not
amplified. Whitening counts tokens: long completions weigh more in its mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.grpo import (
    GroupConfig,
    OutcomeMethod,
    compared_turns,
    episode_advantages,
    group_credit,
)
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class ReinforcePPBaselineConfig(GroupConfig):
    """Settings of REINFORCE++-baseline."""

    kl_coef: float = 1e-3
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    kl_estimator: F.KLEstimator = "k2"
    """KL estimator; a trailing + uses its value with the gradient of k2."""


@ALGORITHMS.register("reinforce_pp_baseline")
class ReinforcePPBaseline(OutcomeMethod[ReinforcePPBaselineConfig]):
    """REINFORCE with returns centred in their group and whitened over the batch."""

    Config: ClassVar[type[ReinforcePPBaselineConfig]] = ReinforcePPBaselineConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's centred return, whitened over the tokens that have something to compare."""
        config = self.config
        centred = table.to_tokens(episode_advantages(table, config, scale_by_std=False))
        whitened = F.whiten(centred, table.to_tokens(compared_turns(table, config)))
        return group_credit(table, table.turn_entries(whitened), config)
