"""Nash-MD: the policy against its geometric mixture with the reference (Munos et al. 2023, arXiv 2312.00886).

For preferences that no reward need explain. With ``y`` an episode of the policy and ``y'`` one of the mixture
``p ** (1 - mixture) * p_ref ** mixture`` on the same instance, mirror descent towards the regularised Nash equilibrium
is

    L = -(P(y > y') - 1/2) log p(y) + kl_coef * KL(p, p_ref)

Here ``y`` is preferred if its return is higher, and counts half where the two are equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, within
from turngym.trainers.core.algorithm import Credit, Need, Normalisation, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable

_ROUNDING = 1e-9


@dataclass(frozen=True)
class NashMDConfig(ClippedConfig):
    """Settings of Nash-MD."""

    keeps: ClassVar[frozenset[str]] = frozenset({"kl_coef"})

    normalisation: Normalisation = "trajectory_sum"
    """Over what the loss is averaged: likelihoods of whole episodes, then the episodes."""
    kl_coef: float = 0.1
    """Weight of the KL to the reference policy."""
    kl_estimator: F.KLEstimator = "k1+"
    """KL estimator; a trailing + uses its value with the gradient of k2, a leading r multiplies it by the importance
    ratio, gradient included."""
    mixture: float = 0.5
    """Exponent of the reference's probabilities in those of the opponent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("mixture", self.mixture, 0, 1)


def preference_rates(returns: Tensor, theirs: Tensor, groups: Tensor) -> Tensor:
    """Return [episodes] the share of its group's opponents that each beats, half for equals; nan without opponents.

    Args:
        returns: [episodes] Return of each.
        theirs: [episodes] Return of each one's opponent, nan if it is unknown.
        groups: [episodes] Group of each.

    >>> preference_rates(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]), torch.tensor([0, 0]))
    tensor([0.7500, 0.2500])
    """
    met = (groups[:, None] == groups) & ~theirs.isnan()
    gap, noise = returns[:, None] - theirs, _ROUNDING * torch.maximum(returns.abs()[:, None], theirs.abs())
    won = torch.where(gap.abs() <= noise, 0.5, (gap > 0).to(returns))
    return torch.where(met, won, 0.0).sum(1) / met.sum(1)


@ALGORITHMS.register("nash_md")
class NashMD(ClippedMethod[NashMDConfig]):
    """Preferences over episodes of the policy's mixture with its reference."""

    Config: ClassVar[type[NashMDConfig]] = NashMDConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Episodes of the mixture, its reference, and what the loss needs."""
        return super().needs | {Need.MIXTURES, Need.REFERENCE_LOGPROBS}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the episodes of the iteration, each with the return of the mixture's on its instance."""
        sampled, opponents = rollout(), rollout(mixture=self.config.mixture)
        returns = {each.spec.episode: each.reward_sum for each in opponents if not each.fault}
        return [with_columns(each, {"mixture_return": returns.get(each.spec.episode, math.nan)}) for each in sampled]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's rate of preference less one half, and what its turn's action costs.

        It is 0, and counted, in groups without a known opponent.
        """
        theirs = table.numbers("episode", "mixture_return").to(table.reward.dtype)
        rates = preference_rates(table.episode_return(), theirs, table.episode_group)
        unknown = rates.isnan()
        compared = (rates.nan_to_num(0.5) - 0.5)[table.episode]
        advantages = compared - table.invalid_penalties(self.config.invalid_penalty)
        known = theirs[~theirs.isnan()]
        metrics = {
            "nash_preferred": float(rates[~unknown].mean()) if not bool(unknown.all()) else 0.5,
            "mixture_return": float(known.mean()) if len(known) else 0.0,
            "episodes_without_opponent": float(unknown.sum()),
        }
        return Credit(table.to_tokens(advantages.masked_fill(unknown[table.episode], 0.0)), metrics=metrics)
