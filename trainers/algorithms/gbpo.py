"""GBPO: the importance ratio is drawn to a target that the group's median sets (arXiv 2604.18578).

Group-relative bounded policy optimisation. Where ratios are bounded, the best policy is known: a ratio at the upper
bound for episodes better than the median, at the lower one for worse ones. The loss is the distance of each ratio from
there, so that nothing is clipped: a ratio that has passed its target is pulled back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class GBPOConfig(OutcomeConfig):
    """Settings of group-relative bounded policy optimisation."""

    clip_low: float = 0.3
    """Distance of the lowest target below a ratio of 1."""
    clip_high: float = 0.3
    """Distance of the highest target above it."""
    temperature: float = 1e-4
    """Softness of targets by the distance from the median; small ones make every target a bound."""
    scale_by_std: bool = True
    """True if returns are divided by the group's standard deviation."""
    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("temperature", self.temperature, 1e-12)
        within("epsilon", self.epsilon, 0)


def above_median(scores: Tensor, groups: Tensor) -> Tensor:
    """Return each score less the median of its group, of an even one the mean of the middle two; alone, the score.

    >>> above_median(torch.tensor([1.0, 0.0, 0.0, 5.0]), torch.tensor([0, 0, 0, 1]))
    tensor([1., 0., 0., 5.])
    """
    found = scores.clone()
    for group in groups.unique():
        here = groups == group
        found[here] -= torch.quantile(scores[here], 0.5) if int(here.sum()) > 1 else 0.0
    return found


@ALGORITHMS.register("gbpo")
class GBPO(OutcomeMethod[GBPOConfig]):
    """Regression of ratios on bounds by the side of the group's median."""

    Config: ClassVar[type[GBPOConfig]] = GBPOConfig

    def offsets(self, returns: Tensor, groups: Tensor) -> Tensor:
        """Return the target of each episode's ratio, less 1."""
        config, gaps = self.config, above_median(returns, groups)
        if config.scale_by_std and len(groups):
            deviations = F.group_statistics(returns, groups, int(groups.max()) + 1, ddof=1).std[groups]
            gaps = gaps / torch.where(deviations > config.epsilon, deviations + config.epsilon, 1.0)
        gaps = gaps.masked_fill(gaps.abs() <= 1e-9, 0.0)
        return (config.clip_low + config.clip_high) * torch.sigmoid(gaps / config.temperature) - config.clip_low

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its weight, with the sign of its target; those at a target of 1 keep their advantage's."""
        config, groups, returns = self.config, table.episode_group, table.episode_return()
        weights = F.group_advantages(
            returns,
            groups,
            scale_by_std=config.scale_by_std,
            epsilon=config.epsilon,
            singleton=config.singleton,
        )
        offsets = self.offsets(returns, groups)
        advantages = torch.where(offsets == 0, weights, offsets.sign() * weights.abs())
        credit = group_credit(table, advantages[table.episode], config)
        penalised = table.to_tokens(table.invalid_penalties(config.invalid_penalty) > 0)
        bounds = torch.where(credit.advantages > 0, config.clip_high, -config.clip_low).to(offsets)
        columns = {"gbpo_offset": torch.where(penalised, bounds, table.to_tokens(offsets[table.episode]))}
        metrics = {"gbpo_held": float((offsets == 0).double().mean()) if len(offsets) else 0.0}
        return replace(credit, columns=columns, metrics={**credit.metrics, **metrics})

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the distance of the ratio from its target, times the absolute advantage."""
        found, advantages = super().surrogate(inputs), inputs.advantages
        offsets = inputs.numbers("gbpo_offset").to(found.ratio)
        bounds = torch.where(advantages > 0, self.config.clip_high, -self.config.clip_low).to(offsets)
        offsets = torch.where(offsets * advantages < 0, bounds, offsets)
        gaps = found.ratio - 1 - offsets
        passed, never = (gaps * offsets > 0) & inputs.action_mask, torch.zeros_like(inputs.action_mask)
        policy = F.ClippedSurrogate(gaps.abs() * advantages.abs(), -advantages * found.ratio, passed, never)
        return found._replace(policy=policy)
