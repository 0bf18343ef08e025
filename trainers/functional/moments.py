"""Means and deviations: whitening of a batch, and running ones that keep a critic's targets at one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from turngym.lazy import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


_SMALLEST_VARIANCE = 1e-2


class Moments(NamedTuple):
    """Exponential moving averages of a number and its square, and their accumulated weight.

    With weight 0 numbers are not changed. The variance is at least 0.01, as in the released
    code of MAPPO.
    """

    mean_sum: float = 0.0
    square_sum: float = 0.0
    weight: float = 0.0

    @property
    def mean(self) -> float:
        """The mean so far, corrected for the short start; 0 if nothing is known."""
        return self.mean_sum / self.weight if self.weight else 0.0

    @property
    def std(self) -> float:
        """The standard deviation so far; 1 if nothing is known."""
        if not self.weight:
            return 1.0
        return math.sqrt(max(self.square_sum / self.weight - self.mean**2, _SMALLEST_VARIANCE))

    def updated(self, values: Float[Tensor, "item"], *, decay: float) -> Moments:
        """Return the moments updated with a batch of numbers; the same ones where a square overflows.

        >>> from torch import tensor
        >>> Moments().updated(tensor([1.0, 3.0]), decay=0.9).mean
        2.0
        """
        if not len(values):
            return self
        fresh = 1 - decay
        mean, square = float(values.mean()), float((values**2).mean())
        if not math.isfinite(square):
            return self
        return Moments(
            decay * self.mean_sum + fresh * mean,
            decay * self.square_sum + fresh * square,
            decay * self.weight + fresh,
        )

    def normalise(self, values: Tensor) -> Tensor:
        """Return the numbers minus the mean, divided by the standard deviation."""
        return (values - self.mean) / self.std

    def restore(self, normalised: Tensor) -> Tensor:
        """Undo :meth:`normalise`."""
        return normalised * self.std + self.mean


def whiten(
    values: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"] | None = None, *, shift_mean: bool = True
) -> Float[Tensor, "*shape"]:
    """Return the values with mean 0 and sample variance 1 over the mask, as verl does (ddof 1, 1e-8 under the root).

    Fewer than two values under the mask have no variance and are returned unchanged.

    Args:
        values: Any shape.
        mask: Mask of entries; None for all. The others are shifted and scaled by the same amounts.
        shift_mean: False keeps the mean.
    """
    weights = values.new_ones(values.shape) if mask is None else mask.to(values.dtype)
    count = weights.sum()
    if count < 2:
        return values
    kept = values if mask is None else values.masked_fill(~mask, 0.0)
    mean = kept.sum() / (count + 1e-8)
    variance = ((values - mean) ** 2 * weights).nan_to_num().sum() / (count + 1e-8) * count / (count - 1)
    whitened = (values - mean) * (variance + 1e-8).rsqrt()
    return whitened if shift_mean else whitened + mean


def standardise(values: Float[Tensor, "item"], *, ddof: int, epsilon: float) -> Float[Tensor, "item"]:
    """Return ``(values - mean) / (std + epsilon)``; zeros if there are fewer than two values.

    This is the return batch normalisation of GEM (arXiv 2510.01051).
    """
    if len(values) < 2:
        return values * 0
    return (values - values.mean()) / (values.std(correction=ddof) + epsilon)


def explained_variance(predictions: Float[Tensor, "item"], targets: Float[Tensor, "item"]) -> float:
    """Return how much of the targets' variance the critic explains: 1 is all, 0 no more than a constant would.

    Targets that do not vary, or by rounding alone, give 0.

    >>> from torch import tensor
    >>> explained_variance(tensor([1.0, 2.0]), tensor([1.0, 2.0]))
    1.0
    """
    import torch

    if len(targets) < 2 or targets.std() <= 4 * torch.finfo(targets.dtype).eps * targets.abs().max():
        return 0.0
    return float(1 - (targets - predictions).var() / targets.var())
