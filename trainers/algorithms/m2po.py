"""M2PO: as few tokens leave the loss as keep the second moment of the log-ratios below a bound (arXiv 2510.01161).

A modifier: with ``p`` the policy before the first update, as the trainer computes it, and ``b`` the sampler's, the
tokens with the largest (log p - log b)^2 of the whole batch are left out until the mean of the others is below the
bound. A batch that is hardly stale loses nothing, one that is very stale its outliers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.correction import Correction, CorrectionConfig, SamplerCorrection, share
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class M2POConfig(CorrectionConfig):
    """Settings of the bound of the second moment."""

    threshold: float = 0.04
    """Bound of the mean squared log-ratio of the tokens that stay."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("threshold", self.threshold, 0)


def least_of(squares: Tensor, threshold: float) -> Tensor:
    """Return the mask of the smallest numbers whose mean is below a threshold; one always stays.

    Args:
        squares: Numbers of 0 or more, one dimension.
        threshold: Their mean is below it.

    >>> least_of(torch.tensor([0.01, 0.5, 0.03]), 0.04)
    tensor([ True, False,  True])
    """
    kept = torch.zeros_like(squares, dtype=torch.bool)
    if len(squares):
        ordered, order = squares.sort(stable=True)
        means = ordered.cumsum(0) / torch.arange(1, len(squares) + 1, dtype=squares.dtype)
        kept[order[: max(int((means < threshold).sum()), 1)]] = True
    return kept


@ALGORITHMS.register("m2po")
class M2PO(SamplerCorrection[M2POConfig]):
    """Masks of the largest log-ratios of a batch, on another method."""

    Config: ClassVar[type[M2POConfig]] = M2POConfig
    label: ClassVar[str] = "m2po"
    gives_weights: ClassVar[bool] = False

    def correction(self, gaps: Tensor, table: TurnTable) -> Correction:
        """Return which tokens stay."""
        squares = gaps**2
        kept = least_of(squares, self.config.threshold)
        moment = float(squares[kept].mean()) if len(squares) else 0.0
        metrics = {"masked": share(~kept), "second_moment": moment}
        return Correction(torch.ones_like(gaps), kept, metrics, self.config.counted)
