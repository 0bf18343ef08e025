"""BNPO: groups are weighted by how rare their success rate is in the batch (Xiao et al. 2025, arXiv 2506.02864).

Beta normalisation: a Beta distribution is fitted to the success rates of the batch's groups, and a group's centred
returns are divided by a density derived from it at its own rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class BNPOConfig(OutcomeConfig):
    """Settings of Beta normalisation."""

    lowest: float = 0.0
    """Smallest return of the task; lower ones are taken as it."""
    highest: float = 1.0
    """Largest return of the task; higher ones are taken as it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lowest < self.highest:
            raise ConfigError(f"lowest must be less than highest={self.highest:g}, got {self.lowest:g}.")


def beta_weights(rates: Tensor, entering: Tensor) -> Tensor:
    """Return the weight of each group: 1 over a Beta density at its success rate, at most a million.

    Args:
        rates: Success rate of each group, from 0 to 1.
        entering: Mask of the groups that the distribution is fitted to; with fewer than two, or with equal rates, all
            weights are 1.

    >>> beta_weights(torch.tensor([0.25, 0.75]), torch.tensor([True, True]))
    tensor([0.9555, 0.9555])
    """
    if int(entering.sum()) < 2 or float(rates[entering].std()) == 0:
        return torch.ones_like(rates)
    mean, variance = rates[entering].mean(), rates[entering].var()
    total = mean * (1 - mean) / variance - 1
    alpha, beta = (1 + total * mean / 3).clamp_min(1), (1 + total * (1 - mean) / 3).clamp_min(1)
    constant = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
    density = (torch.xlogy(alpha - 1, rates) + torch.xlogy(beta - 1, 1 - rates) - constant).exp()
    return (1 / density).clamp(0, 1e6)


@ALGORITHMS.register("bnpo")
class BNPO(OutcomeMethod[BNPOConfig]):
    """Policy gradient with groups weighted by a Beta distribution of success rates."""

    Config: ClassVar[type[BNPOConfig]] = BNPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's mean, times the group's weight."""
        lowest, highest, groups = self.config.lowest, self.config.highest, table.episode_group
        scores = ((table.episode_return() - lowest) / (highest - lowest)).clamp(0, 1)
        count = int(groups.max()) + 1 if len(groups) else 0
        mean, _, size = F.group_statistics(scores, groups, count, ddof=0)
        is_raw = self.config.singleton == "raw"
        rates = mean.masked_fill(size == 1, 0.0) if is_raw else mean
        weights = beta_weights(rates, torch.ones_like(size, dtype=torch.bool) if is_raw else size > 1)
        weighted = (scores - rates[groups]) * weights[groups]
        return group_credit(table, weighted[table.episode], self.config)
