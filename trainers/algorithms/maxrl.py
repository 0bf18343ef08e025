"""MaxRL: GRPO whose advantages are divided by the group's mean return (arXiv 2602.02710).

With returns of 0 and 1 and a success rate p, the weight of a success is (1 - p) / p: that of maximum likelihood, whose
gradient is that of log p. Hard tasks, which succeed rarely, then weigh more than in GRPO, whose weight grows with the
square root of that only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class MaxRLConfig(OutcomeConfig):
    """Settings of MaxRL."""

    epsilon: float = 0.0
    """Added to the mean. With 0 a group whose mean is 0 or less has advantage 0; above 0 it is divided like the others,
    as in SkyRL."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("epsilon", self.epsilon, 0)


@ALGORITHMS.register("maxrl")
class MaxRL(OutcomeMethod[MaxRLConfig]):
    """Group-relative policy optimisation, divided by the group's mean return."""

    Config: ClassVar[type[MaxRLConfig]] = MaxRLConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's mean, over that mean."""
        returns, groups, epsilon = table.episode_return(), table.episode_group, self.config.epsilon
        count = int(groups.max()) + 1 if len(groups) else 0
        mean, _, size = F.group_statistics(returns, groups, count, ddof=0)
        divided = (returns - mean[groups]) / (mean + epsilon)[groups]
        if not epsilon:
            divided = torch.where(mean[groups] > 0, divided, torch.zeros_like(divided))
        if self.config.singleton == "raw":
            divided = torch.where(size[groups] == 1, returns, divided)
        return group_credit(table, divided[table.episode], self.config)
