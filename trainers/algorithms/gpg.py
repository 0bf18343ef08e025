"""GPG: the return less its group's mean, with the dilution by zero returns undone (Chu et al. 2025, arXiv 2504.02546).

Where few episodes of a batch are paid, the mean gradient is small. All advantages are multiplied by the number of
episodes over that of episodes with a return other than 0.
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
class GPGConfig(OutcomeConfig):
    """Settings of group policy gradient."""

    divisor: float = 1.0
    """Number that all advantages are divided by."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("divisor", self.divisor, 1e-9)


@ALGORITHMS.register("gpg")
class GPG(OutcomeMethod[GPGConfig]):
    """Group policy gradient, scaled by the share of episodes that are paid."""

    Config: ClassVar[type[GPGConfig]] = GPGConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's mean, scaled."""
        returns, singleton = table.episode_return(), self.config.singleton
        centred = F.group_advantages(returns, table.episode_group, scale_by_std=False, singleton=singleton)
        scale = len(returns) / max(int((returns != 0).sum()), 1)
        return group_credit(table, (scale / self.config.divisor * centred)[table.episode], self.config)
