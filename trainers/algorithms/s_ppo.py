"""Clipping-bias correction (S-PPO of ST-PPO/SORL, Li et al. 2025, arXiv 2511.20718, equation 7).

Clipping drops the gradient that the clipped tokens would have contributed,

    C = mean over tokens of 1{clipped} * ratio * A * grad log p

A modifier: the gradient of the loss is divided by the norm of C. What happens where C is small was not readable in
the paper; dividing by ``max(1, norm)``, so that the gradient never grows, is our reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, TypeVar, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.base.modifier import Modifier, logged
from turngym.trainers.core.algorithm import Gradients, LossInputs, LossOutput, Term

_Normaliser: TypeAlias = Literal["at_least_one", "raw"]
PROBE = "clipping_bias"


@dataclass(frozen=True)
class SPPOConfig:
    """Settings of the clipping-bias correction."""

    normaliser: _Normaliser = "at_least_one"
    """Divide by max(1, norm of the clipped part), which never enlarges the gradient, or by the raw norm."""
    trigger: float = 0.0
    """The correction applies only where the clip fraction is above this."""

    def __post_init__(self) -> None:
        one_of("normaliser", self.normaliser, get_args(_Normaliser))
        within("trigger", self.trigger, 0, 1)


SPPOConfigT = TypeVar("SPPOConfigT", bound=SPPOConfig)


def correct_gradients(
    gradients: Sequence[Tensor], bias: Sequence[Tensor], *, clip_fraction: float, normaliser: str, trigger: float
) -> Gradients:
    """Return the gradients divided by the norm of the part that clipping took away, with that norm and the divisor.

    Args:
        gradients: Gradient of the loss for each parameter.
        bias: Gradient of the clipped tokens' surrogates without clipping, for each parameter.
        clip_fraction: Share of tokens or turns that are clipped.
        normaliser: ``at_least_one`` or ``raw``.
        trigger: The gradients stay as they are unless the clip fraction is above it.

    >>> six, three = torch.tensor([6.0]), torch.tensor([3.0])
    >>> correct_gradients([six], [three], clip_fraction=0.1, normaliser="raw", trigger=0.0).values
    [tensor([2.])]
    """
    norm = torch.stack([part.norm() for part in bias]).norm() if bias else torch.zeros(())
    divisor = torch.ones_like(norm)
    if clip_fraction > trigger:
        divisor = norm + 1e-8 if normaliser == "raw" else norm.clamp_min(1.0)
        gradients = [gradient / divisor.to(gradient.dtype) for gradient in gradients]
    return Gradients(gradients, {f"{PROBE}_norm": float(norm), f"{PROBE}_divisor": float(divisor)})


class ClippingCorrection(Modifier[SPPOConfigT]):
    """The clipping-bias correction on another method."""

    @property
    def changes_policy_loss(self) -> bool:
        """True: the correction is that of the base's own clip."""
        return True

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms, and as a probe the surrogates of the clipped tokens without clipping."""
        output = self.base.loss(inputs)
        policy = self.base.surrogate(inputs).policy
        bias = torch.where(policy.clipped, policy.unclipped, torch.zeros_like(policy.unclipped))
        return replace(output, probes={**output.probes, PROBE: Term(bias, self.normalisation)})

    def transform_gradients(
        self, gradients: Sequence[Tensor], probes: Mapping[str, Sequence[Tensor]], metrics: Mapping[str, float]
    ) -> Gradients:
        """Return the gradients divided by the norm of the probe's."""
        of_base = self.base.transform_gradients(gradients, probes, metrics)
        corrected = correct_gradients(
            of_base.values,
            probes[PROBE],
            clip_fraction=logged(metrics, "clip_fraction") or 0.0,
            normaliser=self.config.normaliser,
            trigger=self.config.trigger,
        )
        return corrected._replace(metrics={**of_base.metrics, **corrected.metrics})


@ALGORITHMS.register("s_ppo")
class SPPO(ClippingCorrection[SPPOConfig]):
    """The clipping-bias correction with the base method's own importance ratio."""

    Config: ClassVar[type[SPPOConfig]] = SPPOConfig
