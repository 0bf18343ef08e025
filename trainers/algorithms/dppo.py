"""DPPO: a token leaves the loss by how far its probability moved, not by its ratio (arXiv 2602.04879).

A modifier: PPO's clip ends the gradient of a token of probability 0.001 at 0.0012, and lets one of 0.99 fall to 0.8.
Here the divergence between the two policies, restricted to the sampled token against all others, says which tokens
stay; what moves back towards the old policy always does.
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

_Divergence: TypeAlias = Literal["tv", "kl"]


@dataclass(frozen=True)
class DPPOConfig:
    """Settings of divergence proximal policy optimisation."""

    divergence: _Divergence = "tv"
    """The change of the token's probability, or the KL divergence of old and new for the token against all others."""
    low: float = 0.2
    """Largest divergence of a token with a negative advantage whose probability fell."""
    high: float = 0.2
    """The same with a positive advantage, whose probability rose."""
    penalty_coef: float = 0.001
    """Weight of the squared log-ratio, also of tokens that have left the policy loss."""
    cap: float = 0.0
    """Largest ratio, taken as a constant weight of the log-probability; 0 differentiates the ratio, without a bound."""

    def __post_init__(self) -> None:
        one_of("divergence", self.divergence, get_args(_Divergence))
        for setting in ("low", "high", "penalty_coef", "cap"):
            within(setting, getattr(self, setting), 0)


def kept_tokens(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, divergence: str, low: float, high: float
) -> Tensor:
    """Return which tokens stay in the loss.

    Args:
        logprobs: Log-probability of each token now, any shape.
        old_logprobs: The same under the policy that sampled.
        advantages: Advantage of each token.
        divergence: ``tv`` or ``kl``.
        low: Largest divergence where the advantage is negative.
        high: Largest divergence where it is positive.

    >>> old, new = torch.tensor([0.1, 0.9]).log(), torch.tensor([0.2, 0.6]).log()
    >>> kept_tokens(new, old, torch.tensor([1.0, -1.0]), divergence="tv", low=0.2, high=0.2)
    tensor([ True, False])
    """
    new, old = logprobs.detach().exp(), old_logprobs.exp()
    moved = new - old
    if divergence == "kl":
        others = (1 - old).clamp_min(0) * ((1 - old + 1e-8) / (1 - new + 1e-8)).log()
        distance = old * (old_logprobs - logprobs.detach()) + others
    else:
        distance = moved.abs()
    rose_too_far, fell_too_far = (moved > 0) & (distance > high), (moved < 0) & (distance > low)
    return ~torch.where(advantages > 0, rose_too_far, (advantages < 0) & fell_too_far)


@ALGORITHMS.register("dppo")
class DPPO(PolicyLoss[DPPOConfig]):
    """Masks by the divergence of single tokens instead of the clip, on another method."""

    Config: ClassVar[type[DPPOConfig]] = DPPOConfig

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return the surrogate without a clip on the tokens that stay, and 0 on the others."""
        config, mask = self.config, inputs.action_mask
        new, old = (torch.where(mask, each, -1.0) for each in (inputs.logprobs, inputs.behaviour_logprobs))
        kept = kept_tokens(new, old, inputs.advantages, divergence=config.divergence, low=config.low, high=config.high)
        whole = -inputs.advantages * found.ratio
        if config.cap:
            whole = -inputs.advantages * found.ratio.detach().clamp_max(config.cap) * sampled(inputs.logprobs, inputs)
        loss = torch.where(kept, whole, torch.zeros_like(whole))
        policy = F.ClippedSurrogate(loss, whole, ~kept, torch.zeros_like(kept))
        return found._replace(policy=policy)

    def penalty(self, found: Surrogate, inputs: LossInputs) -> Tensor | None:
        """Return the squared log-ratio of every token, if it has a weight."""
        return self.config.penalty_coef * found.log_ratio**2 if self.config.penalty_coef else None
