"""NFT: right answers are imitated, and wrong ones through the policy that remains without the right ones.

Negative-aware fine-tuning (Chen et al. 2025, arXiv 2505.18116). With a success rate r, the policy that gives wrong
answers is (old - r * new) / (1 - r): raising its likelihood on wrong answers lowers that of the new one. At the first
update the gradient is that of Dr. GRPO; later the wrong answers weigh as this likelihood says, not as a clip does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, Normalisation
from turngym.trainers.core.turn_table import TurnTable

_Weight: TypeAlias = Literal["failures", "odds", "none"]
LOWEST = 0.02
"""Smallest success rate in the formulas, and distance of the largest one from 1."""


@dataclass(frozen=True)
class NFTConfig(OutcomeConfig):
    """Settings of negative-aware fine-tuning."""

    normalisation: Normalisation = "trajectory_sum"
    """Over what the policy loss is averaged: token terms are summed inside an episode, then averaged over episodes."""
    threshold: float = 1.0
    """Smallest return of a right episode."""
    weight: _Weight = "failures"
    """Weight of a group with success rate r: 1 - r, sqrt((1 - r) / r), or 1."""
    negative: float = 1.0
    """Weight of wrong episodes; 0 imitates the right ones alone."""
    least: float = 1.0
    """Smallest likelihood ratio of a wrong token; the gradient of a smaller one is divided by it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("weight", self.weight, get_args(_Weight))
        within("negative", self.negative, 0)
        within("least", self.least, 1e-6)


def implicit_loss(ratio: Tensor, rates: Tensor, least: float) -> Tensor:
    """Return minus the log-ratio of the policy that remains without right answers; its bound is straight-through.

    Args:
        ratio: Importance ratio of each wrong token.
        rates: Success rate of its group.
        least: Smallest value of the argument of the logarithm.

    >>> implicit_loss(torch.tensor([1.0, 0.5]), torch.tensor([0.5, 0.5]), 1.0)
    tensor([-0.0000, -0.4055])
    """
    remaining = (1 - rates * ratio) / (1 - rates)
    return -(remaining + (remaining.clamp_min(least) - remaining).detach()).log()


@ALGORITHMS.register("nft")
class NFT(OutcomeMethod[NFTConfig]):
    """Imitation of right episodes, and of the policy without them on wrong ones."""

    Config: ClassVar[type[NFTConfig]] = NFTConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the gradient of its loss at the first update, 0 in groups that are all right or wrong."""
        groups, returns = table.episode_group, table.episode_return()
        right = returns >= self.config.threshold
        count = int(groups.max()) + 1 if len(groups) else 0
        rate = F.group_statistics(right.to(returns.dtype), groups, count, ddof=0).mean[groups]
        credit = group_credit(table, self.advantages_of(right, rate)[table.episode], self.config)
        metrics = {**credit.metrics, "nft_right": float(right.double().mean()) if len(right) else 0.0}
        return replace(credit, columns={"nft_rate": table.to_tokens(rate[table.episode])}, metrics=metrics)

    def advantages_of(self, right: Tensor, rate: Tensor) -> Tensor:
        """Return minus the derivative of each episode's loss by a log-probability while the ratio is 1.

        Args:
            right: Which episodes are right.
            rate: Success rate of each one's group; with 0 and 1 the advantage is 0.
        """
        bounded = rate.clamp(LOWEST, 1 - LOWEST)
        odds = (1 - bounded) / bounded
        weight = {"failures": 1 - bounded, "odds": odds.sqrt(), "none": torch.ones_like(rate)}[self.config.weight]
        advantages = torch.where(right, weight, -self.config.negative * weight / odds)
        return torch.where((rate > 0) & (rate < 1), advantages, 0.0)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the log-ratio of right tokens, and the implicit loss of wrong ones."""
        found, advantages = super().surrogate(inputs), inputs.advantages
        rates = inputs.numbers("nft_rate").to(found.ratio).clamp(LOWEST, 1 - LOWEST)
        bad = advantages < 0
        remaining = implicit_loss(torch.where(bad, found.ratio, 1.0), rates, self.config.least)
        loss = torch.where(bad, -advantages * (1 - rates) / rates * remaining, -advantages * found.ratio.log())
        never = torch.zeros_like(inputs.action_mask)
        return found._replace(policy=F.ClippedSurrogate(loss, loss, never, never))
