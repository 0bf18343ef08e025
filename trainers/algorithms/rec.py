"""REC: group-relative REINFORCE with one-sided, two-sided or ring masks, with or without weights (arXiv 2509.24203).

A modifier. The paper finds that what makes REINFORCE with a group's mean work off-policy is the mask, and that
importance weights matter much less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, one_of, sampled, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs

_Mask: TypeAlias = Literal["none", "one_side", "two_side", "ring"]
_Weight: TypeAlias = Literal["none", "ratio", "advantage"]


@dataclass(frozen=True)
class RECConfig:
    """Settings of REC."""

    mask: _Mask = "one_side"
    """Tokens that stay: all; those whose ratio has not left the range in the direction of their advantage; those inside
    the range; or these and those far outside against the direction of their advantage."""
    weight: _Weight = "none"
    """Constant weight of a token: none, its importance ratio, or the exponential of its advantage."""
    low: float = 0.2
    """Width of the range below a ratio of 1."""
    high: float = 0.2
    """Width of the range above it."""
    far_low: float = 0.6
    """With the ring, a token with a positive advantage also stays at a ratio of at most 1 - far_low."""
    far_high: float = 2.0
    """With the ring, one with a negative advantage also stays at a ratio of at least 1 + far_high."""

    def __post_init__(self) -> None:
        one_of("mask", self.mask, get_args(_Mask))
        one_of("weight", self.weight, get_args(_Weight))
        for setting in ("low", "high", "far_low", "far_high"):
            within(setting, getattr(self, setting), 0)


def staying(ratio: Tensor, advantages: Tensor, config: RECConfig) -> Tensor:
    """Return which tokens stay.

    >>> staying(torch.tensor([1.5, 1.5, 0.3]), torch.tensor([1.0, -1.0, 1.0]), RECConfig())
    tensor([False,  True,  True])
    """
    good, bad = advantages >= 0, advantages <= 0
    below_top, above_bottom = ratio <= 1 + config.high, ratio >= 1 - config.low
    if config.mask == "none":
        return torch.ones_like(good)
    if config.mask == "one_side":
        return (good & below_top) | (bad & above_bottom)
    inside = below_top & above_bottom
    if config.mask == "two_side":
        return inside
    return inside | (good & (ratio <= 1 - config.far_low)) | (bad & (ratio >= 1 + config.far_high))


@ALGORITHMS.register("rec")
class REC(PolicyLoss[RECConfig]):
    """REINFORCE with a mask, on another method."""

    Config: ClassVar[type[RECConfig]] = RECConfig

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return minus the weight times the advantage times the log-probability of the tokens that stay."""
        ratio, score = found.ratio.detach(), -inputs.advantages * sampled(inputs.logprobs, inputs)
        left = ~staying(ratio, inputs.advantages, self.config) & inputs.action_mask
        if self.config.weight == "ratio":
            score = ratio * score
        elif self.config.weight == "advantage":
            score = inputs.advantages.exp() * score
        loss = score.masked_fill(left, 0.0)
        return found._replace(policy=F.ClippedSurrogate(loss, score, left, torch.zeros_like(left)))
