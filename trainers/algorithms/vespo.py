"""VESPO: every turn is weighted by a smooth kernel of its importance ratio, and none is clipped (arXiv 2602.10693).

A modifier: with w the ratio of a whole turn, the product over its tokens,

    L = -stop_gradient(w^k * exp(l * (1 - w))) * A * log p

The kernel is 1 at w = 1, falls to 0 on both sides, and is largest at w = k / l: below 1 where the advantage is positive
and above it where it is negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioLevel, Surrogate, sampled, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs

LEAST = math.log(1e-8)
"""The smallest log-ratio of a turn."""


@dataclass(frozen=True)
class VESPOConfig:
    """Settings of VESPO."""

    power_positive: float = 2.0
    """Power of the ratio where the advantage is 0 or more."""
    decay_positive: float = 3.0
    """Rate of the exponential decay there; at least 0.0001 is taken."""
    power_negative: float = 3.0
    """Power of the ratio where the advantage is negative."""
    decay_negative: float = 2.0
    """Rate of the decay there."""

    def __post_init__(self) -> None:
        for setting in ("power_positive", "decay_positive", "power_negative", "decay_negative"):
            within(setting, getattr(self, setting), 0)


def kernel(log_weight: Tensor, power: Tensor, decay: Tensor) -> Tensor:
    """Return ``w^power * exp(decay * (1 - w))`` of the ratio with this logarithm.

    >>> kernel(torch.tensor([0.0, -1.0]), torch.tensor(2.0), torch.tensor(3.0))
    tensor([1.0000, 0.9016])
    """
    return (decay + power * log_weight - decay * log_weight.exp()).exp()


@ALGORITHMS.register("vespo")
class VESPO(PolicyLoss[VESPOConfig]):
    """A smooth kernel of the turn's ratio instead of the clip, on another method."""

    Config: ClassVar[type[VESPOConfig]] = VESPOConfig

    @property
    def weighs_sampler(self) -> bool:
        """True: the turn's ratio is that over the policy that sampled."""
        return True

    def with_ratio(self, level: RatioLevel) -> Self:
        """Refuse another importance ratio.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError("vespo has its own turn-level ratio: leave out the modifier that sets another one.")

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return minus the turn's weight times the advantage times the log-probability."""
        log_ratio = F.log_ratios(inputs.logprobs.detach(), inputs.behaviour_logprobs, inputs.action_mask)
        near = log_ratio.clamp(-F.MAX_LOG_RATIO, F.MAX_LOG_RATIO)
        whole = F.turn_sum(near, inputs.turn_ids).clamp(LEAST, F.MAX_LOG_RATIO)
        config, good, number = self.config, inputs.advantages >= 0, whole.new_tensor
        power = torch.where(good, number(config.power_positive), number(config.power_negative))
        decay = torch.where(good, number(config.decay_positive), number(config.decay_negative)).clamp_min(1e-4)
        score = -inputs.advantages * sampled(inputs.logprobs, inputs)
        weight, never = kernel(whole, power, decay), torch.zeros_like(good)
        policy = F.ClippedSurrogate(weight * score, whole.exp() * score, never, never)
        return Surrogate(policy, whole.exp(), found.log_ratio)
