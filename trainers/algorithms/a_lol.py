"""A-LoL: imitation of what did better than expected, by its advantage (Baheti et al. 2023, arXiv 2305.14718).

Advantage-leftover-lunch policy gradient, for episodes of a fixed reference policy. With ``v`` the expected return of
that policy, an episode with return ``R`` is imitated with the weight

    A * clamp(p / p_ref, 1 - clip, 1 + clip)        A = max(R - v, 0)

in which neither factor has a gradient. Episodes that did worse than expected are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, required, within
from turngym.trainers.algorithms.dpo import episode_likelihoods
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable

Level: TypeAlias = Literal["episode", "token", "none"]


@dataclass(frozen=True)
class ALoLConfig(OutcomeConfig):
    """Settings of A-LoL."""

    normalisation: Normalisation = "trajectory_sum"
    """Over what the policy loss is averaged: likelihoods of whole episodes, then the episodes."""
    weight: Level = "episode"
    """Probability ratio to the reference that weighs a token: that of its episode, its own, or none."""
    clip: float = 0.9
    """Largest distance of that ratio from 1."""
    priority: bool = True
    """Whether episodes count in proportion to their advantages once more, as if drawn by them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("weight", self.weight, get_args(Level))
        within("clip", self.clip, 0, 1)
        if not isinstance(self.priority, bool):
            raise ConfigError(f"priority must be True or False, got {self.priority!r}.")


def clamped_ratios(log_ratio: Tensor, clip: float) -> Tensor:
    """Return probability ratios, at most ``clip`` away from 1.

    >>> clamped_ratios(torch.tensor([0.0, 0.5, 5.0, -5.0]), 0.9)
    tensor([1.0000, 1.6487, 1.9000, 0.1000])
    """
    return F.exp_clamped(log_ratio).clamp(1 - clip, 1 + clip)


@ALGORITHMS.register("a_lol")
class ALoL(OutcomeMethod[ALoLConfig]):
    """Imitation of episodes better than their group's mean, by their advantage and ratio to the reference."""

    Config: ClassVar[type[ALoLConfig]] = ALoLConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the log-probabilities before the first update and, for the ratio, those of the reference."""
        reference = set() if self.config.weight == "none" else {Need.REFERENCE_LOGPROBS}
        return super().needs | {Need.OLD_LOGPROBS} | reference

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the advantage of its episode, if positive, times the ratio to the reference.

        Raises:
            ConfigError: The table has no log-probabilities of a reference policy.
        """
        config, groups = self.config, table.episode_group
        returns = table.episode_return()
        better = F.group_advantages(returns, groups, scale_by_std=False, singleton=config.singleton).clamp_min(0)
        mean = float(better.mean()) if len(better) else 0.0
        if config.priority and mean > 0:
            better = better * better / mean
        credit = group_credit(table, torch.zeros_like(table.reward), config)
        imitated = table.to_tokens(better[table.episode]) * self._ratios(table)
        metrics = {"a_lol_better": float((better > 0).double().mean()) if len(better) else 0.0}
        return Credit(credit.advantages + imitated, metrics={**credit.metrics, **metrics})

    def _ratios(self, table: TurnTable) -> Tensor:
        """Return the weight of each token."""
        if self.config.weight == "none":
            return torch.ones_like(table.token_logprob)
        if self.config.weight == "token":
            reference = required(table.token_reference_logprob, "token_reference_logprob")
            return clamped_ratios(table.token_old_logprob - reference, self.config.clip)
        likelihoods, _ = episode_likelihoods(table, "trajectory_sum", reference=True)
        return clamped_ratios(table.to_tokens(likelihoods[table.episode]), self.config.clip)
