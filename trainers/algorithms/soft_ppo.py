"""sPPO: the log-ratio in place of the ratio, and no gradient outside of a range of ratios (repository Trinity-RFT).

A modifier (group-relative REINFORCE off-policy, arXiv 2509.24203): tokens outside of the range leave the loss whatever
the sign of their advantage; inside of it they have the plain policy gradient, not weighted by their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs


@dataclass(frozen=True)
class SoftPPOConfig:
    """Settings of sPPO."""

    width: float = 0.3
    """A token stays if its ratio is at most 1 + width and at least 1 / (1 + width)."""

    def __post_init__(self) -> None:
        within("width", self.width, 0)


@ALGORITHMS.register("soft_ppo")
class SoftPPO(PolicyLoss[SoftPPOConfig]):
    """Log-ratios inside a range, on another method."""

    Config: ClassVar[type[SoftPPOConfig]] = SoftPPOConfig

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-ratio inside the range, and 0 outside."""
        edge, ratio = 1 + self.config.width, found.ratio.detach()
        outside = ((ratio > edge) | (ratio < 1 / edge)) & inputs.action_mask
        score = -inputs.advantages * found.log_ratio
        loss = score.masked_fill(outside, 0.0)
        return found._replace(policy=F.ClippedSurrogate(loss, score, outside, torch.zeros_like(outside)))
