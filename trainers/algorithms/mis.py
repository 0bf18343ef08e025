"""MIS: whole episodes or turns on which trainer and sampler disagree leave the loss (repository volcengine/verl).

Masked importance sampling, also called rejection sampling. A modifier: with ``p`` the policy before the first update,
as the trainer computes it, and ``b`` the sampler's, tokens stay if the ratio ``p / b`` of their segment, or a
divergence made of it, is within limits, and if no token of it has a ratio below a veto. It gives no weights: ``tis``
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
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
class MISConfig(CorrectionConfig):
    """Settings of masked importance sampling."""

    level: Level = "episode"
    """Unit that is kept or masked as a whole: a token, a turn or an episode."""
    by: F.Reduction = "mean"
    """How it is judged: by the mean over its tokens, of ratios the geometric one; by the sum, of ratios their product,
    which grows with length; or, with k2 and k3, by its worst token."""
    divergence: F.Divergence = "ratio"
    """Measure of the deviation: the ratio, k2 (half of the squared log-ratio), or k3 (ratio - 1 - log-ratio)."""
    low: float = 0.99
    """The smallest ratio that stays."""
    high: float = 1.01
    """The largest ratio that stays."""
    threshold: float = 0.01
    """The largest k2 or k3 that stays."""
    veto: float = 0.0001
    """A token whose ratio is below takes its turn, or at the other levels its episode, out of the loss; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("level", self.level, get_args(Level))
        one_of("by", self.by, get_args(F.Reduction))
        one_of("divergence", self.divergence, get_args(F.Divergence))
        within("low", self.low, 0, 1)
        within("high", self.high, 1)
        within("threshold", self.threshold, 0)
        within("veto", self.veto, 0, 1)
        if self.divergence == "ratio" and self.by == "max":
            raise ConfigError(
                "by='max' takes the worst token, and a ratio has two sides: pass divergence='k2' or 'k3'."
            )


@ALGORITHMS.register("mis")
class MIS(SamplerCorrection[MISConfig]):
    """Masks by importance ratios on another method."""

    Config: ClassVar[type[MISConfig]] = MISConfig
    label: ClassVar[str] = "mis"
    gives_weights: ClassVar[bool] = False

    def correction(self, gaps: Tensor, table: TurnTable) -> Correction:
        """Return which tokens stay."""
        config = self.config
        ratio = config.divergence == "ratio"
        inside = F.within_limits(
            gaps,
            segments_of(table, config.level),
            divergence=config.divergence,
            by=config.by,
            low=config.low,
            high=config.high if ratio else config.threshold,
        )
        vetoed = torch.zeros_like(inside)
        if config.veto > 0:
            whole = segments_of(table, "turn" if config.level == "turn" else "episode")
            vetoed = ~F.without_veto(gaps, whole, least=config.veto)
        kept = inside & ~vetoed
        return Correction(
            torch.ones_like(gaps), kept, {"masked": share(~kept), "vetoed": share(vetoed)}, self.config.counted
        )
