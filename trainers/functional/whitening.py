"""Shifting and scaling numbers to mean 0 and variance 1 over a whole batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.lazy import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


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
