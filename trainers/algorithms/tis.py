"""TIS: truncated importance sampling against the sampler (Yao et al. 2025; repository volcengine/verl).

A modifier: with ``p`` the policy before the first update, as the trainer computes it, and ``b`` the sampler's,

    L = min(p / b, cap) * L_base(ratios against p)

The weight is a constant for the gradient. It has the base of decoupled PPO (Hilton et al. 2021, arXiv 2110.00641): the
base method's clip keeps the policy near ``p``, and the weight removes the bias of sampling from ``b``: all of it over
episodes and below the cap, some of it over tokens or turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.base.correction import Correction, Level, SamplerCorrection, segments_of, share
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class TISConfig:
    """Settings of truncated importance sampling."""

    level: Level = "token"
    """Level of the weight: a token, or the product over a turn or episode, shared by its tokens."""
    cap: float = 2.0
    """The largest weight."""
    normalise: bool = False
    """True if weights are divided by their mean over the batch."""

    def __post_init__(self) -> None:
        one_of("level", self.level, get_args(Level))
        within("cap", self.cap, 1)


@ALGORITHMS.register("tis")
class TIS(SamplerCorrection[TISConfig]):
    """Truncated importance sampling on another method."""

    Config: ClassVar[type[TISConfig]] = TISConfig
    needs_advantages: ClassVar[bool] = True
    label: ClassVar[str] = "tis"

    def correction(self, gaps: Tensor, table: TurnTable) -> Correction:
        """Return truncated weights; every token stays."""
        segments = segments_of(table, self.config.level)
        weight = F.truncated_weights(gaps, segments, cap=self.config.cap)
        truncated = weight >= self.config.cap
        if self.config.normalise:
            weight = F.normalised_weights(weight, segments)
        mean = float(weight.mean()) if len(weight) else 1.0
        kept = torch.ones_like(truncated)
        return Correction(weight, kept, {"truncated": share(truncated), "weight": mean})
