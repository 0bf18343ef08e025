"""TOPR: samples with a negative advantage are weighted by a truncated ratio, good ones not at all (arXiv 2503.14286).

A modifier: tapered off-policy REINFORCE. A good sample is imitated however unlikely it has become; a bad one is pushed
down only as far as the policy would still give it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, sampled, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs


@dataclass(frozen=True)
class TOPRConfig:
    """Settings of tapered off-policy REINFORCE."""

    cap: float = 1.0
    """Largest weight of a token whose advantage is not positive."""

    def __post_init__(self) -> None:
        within("cap", self.cap, 0)


@ALGORITHMS.register("topr")
class TOPR(PolicyLoss[TOPRConfig]):
    """Truncated ratios for bad samples alone, on another method."""

    Config: ClassVar[type[TOPRConfig]] = TOPRConfig

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return minus the weight times the advantage times the log-probability."""
        score, ratio = -inputs.advantages * sampled(inputs.logprobs, inputs), found.ratio.detach()
        bad = inputs.advantages <= 0
        weight = torch.where(bad, ratio.clamp_max(self.config.cap), torch.ones_like(ratio))
        clipped = bad & (ratio > self.config.cap) & inputs.action_mask
        policy = F.ClippedSurrogate(weight * score, ratio * score, clipped, torch.zeros_like(clipped))
        return found._replace(policy=policy)
