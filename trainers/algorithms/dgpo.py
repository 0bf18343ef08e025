"""DGPO: groups are divided by their mean absolute deviation, and hard ones weighted up (MathForge, arXiv 2601.20614).

Divided by the absolute deviation, the advantages of every group have the same sum of absolute values, so that no task
moves the policy more than another because of its success rate. Weights by difficulty come after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.errors import ConfigError, nearest
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.gdpo import turn_parts
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class DGPOConfig(OutcomeConfig):
    """Settings of difficulty-aware group policy optimisation."""

    temperature: float = 2.0
    """Temperature of the softmax over the groups' rates; infinity weighs all groups alike."""
    rate: str = ""
    """Part of the reward whose mean is a group's rate; empty for the whole return."""
    epsilon: float = 1e-4
    """Added to the sum of absolute deviations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("temperature", self.temperature, 1e-9)
        within("epsilon", self.epsilon, 0)


def difficulty_weights(rates: Tensor, varied: Tensor, temperature: float) -> Tensor:
    """Return the weight of each group: a softmax over minus the rates, 1 on average over the groups that vary.

    Args:
        rates: Success rate of each group; 0 counts as 1, as in the released code.
        varied: Mask of the groups whose returns differ; the others have weight 1.
        temperature: Divisor of the rates.

    >>> difficulty_weights(torch.tensor([0.25, 0.75, 1.0]), torch.tensor([True, True, False]), 2.0)
    tensor([1.1244, 0.8756, 1.0000])
    """
    weights = torch.ones_like(rates)
    counted = torch.where(rates == 0, torch.ones_like(rates), rates)[varied]
    weights[varied] = len(counted) * torch.softmax(-counted / temperature, 0)
    return weights


@ALGORITHMS.register("dgpo")
class DGPO(OutcomeMethod[DGPOConfig]):
    """Group-relative policy optimisation with hard groups weighted up."""

    Config: ClassVar[type[DGPOConfig]] = DGPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's difference from the group's mean, divided and weighted."""
        config, groups, returns = self.config, table.episode_group, table.episode_return()
        count = int(groups.max()) + 1 if len(groups) else 0
        mean, std, size = F.group_statistics(returns, groups, count, ddof=0)
        above, varied = returns - mean[groups], std > 0
        total = torch.zeros_like(mean).index_add(0, groups, above.abs())
        lengths = table.episode_sum(table.num_tokens.to(returns.dtype))
        counted = lengths[varied[groups]].sum()
        weights = difficulty_weights(self._rates(table, mean), varied, config.temperature)
        weights = weights * (lengths.sum() / counted if counted > 0 else 1.0)
        advantages = size[groups] * above / (total[groups] + config.epsilon) * weights[groups]
        if config.singleton == "raw":
            advantages = torch.where(size[groups] == 1, returns, advantages)
        return group_credit(table, torch.where(above == 0, above, advantages)[table.episode], config)

    def _rates(self, table: TurnTable, mean: Tensor) -> Tensor:
        """Return the rate of each group, given the means of its returns."""
        if not self.config.rate or not len(mean):
            return mean
        parts = turn_parts(table)
        name = self.config.rate
        if name not in parts:
            raise ConfigError(f"dgpo reads {name!r}, a part of no reward. {nearest(name, parts)}")
        part = table.episode_sum(parts[name]).to(mean)
        return F.group_statistics(part, table.episode_group, len(mean), ddof=0).mean
