"""G2RPO: the advantage of an episode is the normal quantile of its rank in the group (arXiv 2604.08539).

Only the order of the returns matters, so that neither their scale nor a long tail of them does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class G2RPOConfig(OutcomeConfig):
    """Settings of Gaussian ranks."""


def gaussian_ranks(scores: Tensor) -> Tensor:
    """Return the quantile of the standard normal distribution at each score's rank; equal scores share their mean.

    Args:
        scores: Scores to compare, one dimension.

    >>> gaussian_ranks(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([ 1.1503, -0.3834, -0.3834, -0.3834])
    """
    count = len(scores)
    quantiles = math.sqrt(2) * torch.erfinv(2 * (torch.arange(count, dtype=scores.dtype) + 0.5) / count - 1)
    _, level, members = scores.unique(return_inverse=True, return_counts=True)
    means: Tensor = torch.zeros(len(members), dtype=scores.dtype).index_add(0, level.sort().values, quantiles) / members
    return means[level]


@ALGORITHMS.register("g2rpo")
class G2RPO(OutcomeMethod[G2RPOConfig]):
    """Policy gradient with Gaussian ranks of a group."""

    Config: ClassVar[type[G2RPOConfig]] = G2RPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the quantile of its episode's rank."""
        returns, groups = table.episode_return(), table.episode_group
        advantages = torch.zeros_like(returns)
        for group in groups.unique():
            here = groups == group
            is_raw = int(here.sum()) == 1 and self.config.singleton == "raw"
            advantages[here] = returns[here] if is_raw else gaussian_ranks(returns[here])
        return group_credit(table, advantages[table.episode], self.config)
