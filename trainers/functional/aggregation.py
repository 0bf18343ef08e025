"""Averages of per-token losses over padded rows, with verl's names, which the reference vectors use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.errors import ConfigError, nearest
from turngym.lazy import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "token-sum-norm")


def aggregate(
    losses: Float[Tensor, "row token"], mask: Bool[Tensor, "row token"], mode: str, *, constant: float | None = None
) -> Float[Tensor, ""]:
    """Return one number for a batch of rows.

    Args:
        losses: Loss of each token.
        mask: Mask of tokens; rows without one are not counted.
        mode: ``token-mean``; ``seq-mean-token-sum``: sums of rows, averaged; ``seq-mean-token-mean``: means of rows,
            averaged; ``seq-mean-token-sum-norm``: sums of rows over ``constant``, averaged (verl 0.9);
            ``token-sum-norm``: the sum over ``constant``, not divided by the number of rows (what verl called
            ``seq-mean-token-sum-norm`` before).
        constant: Divisor of the two ``norm`` modes; None for the padded length.

    Raises:
        ConfigError: The mode is unknown.
    """
    if mode not in AGGREGATIONS:
        raise ConfigError(f"no aggregation named {mode!r}. {nearest(mode, AGGREGATIONS)}")
    kept = losses.masked_fill(~mask, 0.0)
    lengths = mask.sum(-1)
    rows = (lengths > 0).sum().clamp_min(1)
    if mode == "token-mean":
        return kept.sum() / lengths.sum().clamp_min(1)
    if mode == "seq-mean-token-sum":
        return kept.sum() / rows
    if mode == "seq-mean-token-mean":
        return (kept.sum(-1) / (lengths + 1e-8)).sum() / rows
    total = kept.sum() / (losses.shape[-1] if constant is None else constant)
    return total / rows if mode == "seq-mean-token-sum-norm" else total
