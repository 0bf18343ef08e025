"""OPSM: turns with a negative advantage that the policy has moved away from leave the loss (arXiv 2512.02556).

A modifier. Off-policy sequence masking: a bad sample that the policy would hardly give any more has little left to
teach, and its gradient is large and noisy. Good ones stay however far the policy has moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import LossInputs, LossOutput, Term


@dataclass(frozen=True)
class OPSMConfig:
    """Settings of off-policy sequence masking."""

    threshold: float = 0.5
    """Largest mean, over the tokens of a turn, of the sampler's log-probability less the policy's."""

    def __post_init__(self) -> None:
        within("threshold", self.threshold, 0)


@ALGORITHMS.register("opsm")
class OPSM(Modifier[OPSMConfig]):
    """Masks of bad turns that the policy has left, on another method."""

    Config: ClassVar[type[OPSMConfig]] = OPSMConfig
    needs_advantages: ClassVar[bool] = True

    @property
    def changes_policy_loss(self) -> bool:
        """True: turns are masked."""
        return True

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the base, and the mean over tokens of the metric."""
        return super().normalisations | {"token"}

    def kept(self, inputs: LossInputs) -> Tensor:
        """Return which tokens stay in the policy loss; they count in its average either way."""
        drift = F.log_ratios(inputs.behaviour_logprobs, inputs.logprobs.detach(), inputs.action_mask)
        has_left = F.turn_mean(drift, inputs.turn_ids) > self.config.threshold
        return ~((inputs.advantages < 0) & has_left)

    def corrected(self, inputs: LossInputs) -> LossInputs:
        """Return loss inputs in which masked tokens have advantage 0."""
        return replace(inputs, advantages=inputs.advantages * self.kept(inputs))

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the base's per-token policy loss of the corrected inputs."""
        return super().surrogate(self.corrected(inputs))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms of the corrected inputs, and the share of masked tokens."""
        output = super().loss(self.corrected(inputs))
        masked = (~self.kept(inputs)).to(inputs.advantages)
        return replace(output, metrics={**output.metrics, "opsm_masked": Term(masked, "token")})
