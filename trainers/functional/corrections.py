"""Weights and masks for samples of another distribution than the trainer's: a sampler that rounds, or old weights.

Everything is made of the gap of each sampled token, its log-probability under the trainer minus the sampler's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from turngym.lazy import Tensor, torch
from turngym.trainers.functional.ratios import MAX_LOG_RATIO, exp_clamped

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Divergence: TypeAlias = Literal["ratio", "k2", "k3"]
"""Measure compared with a limit: the log-ratio, half of its square, or ratio - 1 - log-ratio."""
Reduction: TypeAlias = Literal["sum", "mean", "max"]


def over_segments(
    values: Float[Tensor, "token"], segments: Int[Tensor, "token"] | None, by: Reduction = "sum"
) -> Float[Tensor, "token"]:
    """Return at each token what its segment's values come to.

    Args:
        values: A number for each token.
        segments: Segment of each token, a whole number from 0; None makes every token its own.
        by: Reduction of the values of a segment.

    >>> over_segments(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 1, 1]), "mean")
    tensor([1., 4., 4.])
    """
    if segments is None or not len(values):
        return values
    start = values.new_full((int(segments.max()) + 1,), -math.inf if by == "max" else 0.0)
    if by == "max":
        return start.scatter_reduce(0, segments, values, "amax")[segments]
    sums = start.index_add(0, segments, values)
    return (sums / torch.bincount(segments).clamp_min(1).to(sums) if by == "mean" else sums)[segments]


def truncated_weights(
    gaps: Float[Tensor, "token"], segments: Int[Tensor, "token"] | None = None, *, cap: float
) -> Float[Tensor, "token"]:
    """Return importance weights, the trainer over the sampler, none above ``cap``.

    Args:
        gaps: Log-probability under the trainer minus the sampler's.
        segments: Tokens of a segment share the product of their ratios; None weighs every token by itself.
        cap: The largest weight.

    >>> truncated_weights(torch.tensor([0.5, -1.0, 1.2]), cap=2.0)
    tensor([1.6487, 0.3679, 2.0000])
    """
    return exp_clamped(over_segments(gaps, segments)).clamp_max(cap)


def normalised_weights(
    weights: Float[Tensor, "token"], segments: Int[Tensor, "token"] | None = None
) -> Float[Tensor, "token"]:
    """Return weights divided by their mean, in which every segment counts once; weights that are all 0 stay 0.

    >>> normalised_weights(torch.tensor([1.0, 3.0, 3.0]), torch.tensor([0, 1, 1]))
    tensor([0.5000, 1.5000, 1.5000])
    """
    if not len(weights):
        return weights
    share = 1 / over_segments(torch.ones_like(weights), segments)
    mean = (weights * share).sum() / share.sum()
    return weights / mean if mean > 0 else weights


def within_limits(
    gaps: Float[Tensor, "token"],
    segments: Int[Tensor, "token"] | None = None,
    *,
    divergence: Divergence = "ratio",
    by: Reduction = "sum",
    low: float = 0.0,
    high: float,
) -> Bool[Tensor, "token"]:
    """Return which tokens may stay: their own KL divergence, or that of their segment, is within the limits.

    Args:
        gaps: Log-probability under the trainer minus the sampler's.
        segments: Segment of each token; None judges every token by itself.
        divergence: Value to compare.
        by: How it is put together over a segment. Of ratios, the sum of logarithms is their product, and the mean their
            geometric mean.
        low: The smallest ratio; the other divergences have no lower limit.
        high: The largest ratio, or the largest KL divergence.

    The product of both ratios is 1.02, their geometric mean 1.01:

    >>> gaps, together = torch.tensor([0.00995, 0.00995]), torch.tensor([0, 0])
    >>> within_limits(gaps, together, high=1.015), within_limits(gaps, together, by="mean", high=1.015)
    (tensor([False, False]), tensor([True, True]))
    """
    gaps = gaps.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if divergence == "ratio":
        found = over_segments(gaps, segments, by)
        return (found >= (math.log(low) if low > 0 else -math.inf)) & (found <= math.log(high))
    each = gaps * gaps / 2 if divergence == "k2" else gaps.exp() - 1 - gaps
    return over_segments(each, segments, by) <= high


def without_veto(
    gaps: Float[Tensor, "token"], segments: Int[Tensor, "token"] | None, *, least: float
) -> Bool[Tensor, "token"]:
    """Return which tokens may stay: no token of their segment has a ratio below ``least``.

    >>> without_veto(torch.tensor([0.0, -12.0, 0.0]), torch.tensor([0, 0, 1]), least=1e-4)
    tensor([False, False,  True])
    """
    return -over_segments(-gaps, segments, "max") >= math.log(least)
