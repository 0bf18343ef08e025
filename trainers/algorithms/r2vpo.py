"""R2VPO: no clip; the variance of the ratios is kept at a budget by a dual variable (arXiv 2601.03320, abstract).

A modifier. A clip takes the gradient of a token away as soon as its ratio leaves a range; a penalty of the squared
distance from 1 lets every token speak, and its weight grows while the ratios of a batch spread more than they should.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.base.modifier import logged
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import Algorithm, LossInputs, LossOutput, Term


@dataclass(frozen=True)
class R2VPOConfig:
    """Settings of ratio-variance regularisation."""

    weight: float = 1.0
    """Weight of the squared distance of ratios from 1 in the first iteration."""
    budget: float = 0.01
    """Mean of that square at which the weight stays as it is."""
    rate: float = 0.1
    """Change of the weight per iteration, times what the mean exceeds the budget by; 0 keeps the weight."""

    def __post_init__(self) -> None:
        for setting in ("weight", "budget", "rate"):
            within(setting, getattr(self, setting), 0)


@ALGORITHMS.register("r2vpo")
class R2VPO(PolicyLoss[R2VPOConfig]):
    """A budget for the variance of ratios instead of the clip, on another method."""

    Config: ClassVar[type[R2VPOConfig]] = R2VPOConfig

    def __init__(self, config: R2VPOConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.weight = config.weight
        """Weight of the penalty now."""

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return the surrogate without a clip."""
        never = torch.zeros_like(inputs.action_mask)
        policy = found.policy._replace(
            loss=-inputs.advantages * found.ratio,
            unclipped=-inputs.advantages * found.ratio,
            clipped=never,
            clipped_lower=never,
        )
        return found._replace(policy=policy)

    def penalty(self, found: Surrogate, inputs: LossInputs) -> Tensor:
        """Return the squared distance of each ratio from 1, times the weight."""
        return self.weight * (found.ratio - 1) ** 2

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms, and the mean squared distance as a metric."""
        output, ratio = super().loss(inputs), self.surrogate(inputs).ratio.detach()
        variance = Term((ratio - 1) ** 2, "token")
        return replace(output, metrics={**output.metrics, "ratio_variance": variance})

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Move the weight by what the last iteration's mean exceeds the budget by."""
        super().observe(metrics)
        variance = logged(metrics, "ratio_variance")
        if variance is not None:
            self.weight = max(0.0, self.weight + self.config.rate * (variance - self.config.budget))

    def state(self) -> dict[str, Any]:
        """Return the base's state and the weight."""
        return {**super().state(), "weight": self.weight}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the base's state and the weight."""
        super().load_state(state)
        self.weight = float(state["weight"])
