"""IcePop: tokens on which trainer and sampler disagree leave the loss (Ling Team 2025, Ring-1T, arXiv 2510.18855).

A modifier: with ``p`` the policy before the first update, as the trainer computes it, and ``b`` the sampler's,

    L = M(p / b) * L_base(ratios against p),    M(k) = k for low <= k <= high, else 0

The weight is a constant for the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.base.correction import (
    Correction,
    CorrectionConfig,
    Level,
    SamplerCorrection,
    segments_of,
    share,
)
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class IcePopConfig(CorrectionConfig):
    """Settings of IcePop."""

    low: float = 0.5
    """The smallest ratio that stays."""
    high: float = 5.0
    """The largest ratio that stays."""
    level: Level = "token"
    """Level of the ratio: a token, or the product over a turn or episode, shared by its tokens."""
    normalise: bool = False
    """True if weights are divided by their mean over the batch, in which masked tokens count as 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("level", self.level, get_args(Level))
        within("low", self.low, 0, 1)
        within("high", self.high, 1)
        if self.low == self.high:
            raise ConfigError(f"low must be below high={self.high}, got {self.low}: no ratio would stay.")


@ALGORITHMS.register("icepop")
class IcePop(SamplerCorrection[IcePopConfig]):
    """Importance weights inside a range, and a mask outside of it, on another method."""

    Config: ClassVar[type[IcePopConfig]] = IcePopConfig
    needs_advantages: ClassVar[bool] = True
    label: ClassVar[str] = "icepop"

    def correction(self, gaps: Tensor, table: TurnTable) -> Correction:
        """Return ratios as weights, and which of them are inside the range."""
        segments = segments_of(table, self.config.level)
        kept = F.within_limits(gaps, segments, low=self.config.low, high=self.config.high)
        weight = F.truncated_weights(gaps, segments, cap=self.config.high) * kept
        if self.config.normalise:
            weight = F.normalised_weights(weight, segments)
        mean = float(weight[kept].mean()) if bool(kept.any()) else 0.0
        return Correction(weight, kept, {"masked": share(~kept), "weight": mean}, self.config.counted)
