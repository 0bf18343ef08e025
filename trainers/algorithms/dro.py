"""DRO: the plain policy gradient with a quadratic penalty of the log-ratio (arXiv 2405.19107, repository verl).

A modifier: no ratio and no clip. The penalty holds every token near the policy that sampled it, and its minimum for a
given advantage is at a log-ratio of advantage over beta. The loss of OPMD with its k2 form is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within, without_ratio
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs


@dataclass(frozen=True)
class DROConfig:
    """Settings of DRO."""

    beta: float = 0.1
    """Weight of the penalty, half of the squared log-ratio."""

    def __post_init__(self) -> None:
        within("beta", self.beta, 0)


@ALGORITHMS.register("dro")
class DRO(PolicyLoss[DROConfig]):
    """A quadratic penalty instead of ratio and clip, on another method."""

    Config: ClassVar[type[DROConfig]] = DROConfig

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-probability."""
        return without_ratio(found, inputs)

    def penalty(self, found: Surrogate, inputs: LossInputs) -> Tensor | None:
        """Return the squared log-ratio."""
        return self.config.beta / 2 * found.log_ratio**2
