"""GRPO-S: rewards of whole episodes weighted by the entropy of their tokens (GTPO and GRPO-S, arXiv 2508.04349).

Among right episodes those in which the policy was less certain earn more, since they tried something; among wrong ones
those in which it was certain lose more. The shaped rewards are then compared as in GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.d3s import ENTROPY, with_entropies
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation, Rollout
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class GRPOSConfig(OutcomeConfig):
    """Settings of GRPO-S."""

    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    threshold: float = 1.0
    """Smallest return of a right episode."""
    outcome: float = 1.0
    """Reward of a right episode, and minus that of a wrong one, before entropies count."""
    bonus: float = 0.1
    """Mean of what entropies add to right episodes and take from wrong ones."""
    low: float = 0.2
    """Lower bound of the entropy of a token, in nats; smaller ones count as this."""
    high: float = 0.28
    """Upper bound of the entropy of a token, in nats; larger ones count as this."""
    ddof: int = 0
    """1 for the sample standard deviation of a group, 0 for the population's."""
    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("outcome", "bonus", "epsilon"):
            within(name, getattr(self, name), 0)
        within("low", self.low, 1e-6)
        within("high", self.high, 1e-6)
        within("ddof", self.ddof, 0, 1)
        if self.low > self.high:
            raise ConfigError(f"low must be at most high, got {self.low:g} and {self.high:g}.")


def shaped_rewards(entropies: Tensor, is_right: Tensor, groups: Tensor, outcome: float, bonus: float) -> Tensor:
    """Return [episodes] the reward of each by its share of the group's entropy, or of the inverse if it is wrong.

    A right one of n in its group gets ``outcome + bonus * n * H / sum(H)``, a wrong one of m
    ``-outcome - bonus * m * (1 / H) / sum(1 / H)``, with sums over episodes of the group that are as right.

    Args:
        entropies: [episodes] Mean entropy H of each, above 0.
        is_right: [episodes] Which are right.
        groups: [episodes] Group of each, from 0.
        outcome: Size of a reward without entropies.
        bonus: Weight of the entropies.

    >>> right, groups = torch.tensor([True, True, False, False]), torch.zeros(4, dtype=torch.long)
    >>> shaped_rewards(torch.tensor([0.25, 0.2, 0.28, 0.2]), right, groups, 1.0, 0.1)
    tensor([ 1.1111,  1.0889, -1.0833, -1.1167])
    """
    sides = 2 * groups + is_right.long()
    weights = torch.where(is_right, entropies, 1 / entropies)
    total = torch.zeros(int(sides.max()) + 1 if len(sides) else 0, dtype=weights.dtype).index_add_(0, sides, weights)
    size = outcome + bonus * torch.bincount(sides)[sides] * weights / total[sides]
    return torch.where(is_right, size, -size)


@ALGORITHMS.register("grpo_s")
class GRPOS(OutcomeMethod[GRPOSConfig]):
    """Group-relative policy optimisation of rewards weighted by the entropy of whole episodes."""

    Config: ClassVar[type[GRPOSConfig]] = GRPOSConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the entropies of what was sampled, and what the loss needs."""
        return super().needs | {Need.SAMPLED_ENTROPIES}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories, each with its tokens' entropies as a column."""
        return [with_entropies(each) for each in rollout()]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage by shaped rewards, 0 in groups that are all right or wrong."""
        config, groups = self.config, table.episode_group
        sampled = table.numbers("token", ENTROPY).to(table.reward.dtype).nan_to_num(config.low)
        entropies = table.token_mean(sampled.clamp(config.low, config.high)).clamp_min(config.low)
        right = table.episode_return() >= config.threshold
        shaped = shaped_rewards(entropies, right, groups, config.outcome, config.bonus)
        count = int(groups.max()) + 1 if len(groups) else 0
        rate = F.group_statistics(right.to(shaped.dtype), groups, count, ddof=0).mean[groups]
        compared = F.group_advantages(
            shaped,
            groups,
            scale_by_std=True,
            ddof=config.ddof,
            epsilon=config.epsilon,
            singleton=config.singleton,
        )
        told = torch.where((rate > 0) & (rate < 1) | (torch.bincount(groups) == 1)[groups], compared, 0.0)
        credit = group_credit(table, told[table.episode], config)
        metrics = {"grpo_s_entropy": float(table.token_mean(sampled).mean()) if len(groups) else 0.0}
        return replace(credit, metrics={**credit.metrics, **metrics})
