"""Losses: the clipped surrogate of PPO, the clipped value loss, entropy penalties, and averages over padded rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from turngym.errors import ConfigError, nearest
from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class TokenRows:
    """Positions of the tokens of a batch in padded rows.

    Args:
        mask: Entries of the padded rows that hold a token; in row-major order they are the tokens in their order.
    """

    mask: Bool[Tensor, "row token"]

    @classmethod
    def of(cls, rows: Int[Tensor, "token"], num_rows: int) -> TokenRows:
        """Return the layout for tokens whose rows are given and do not decrease."""
        lengths = torch.bincount(rows, minlength=num_rows)
        longest = int(lengths.max()) if num_rows else 0
        return cls(torch.arange(longest)[None, :] < lengths[:, None])

    def pad(self, column: Float[Tensor, "entry"]) -> Float[Tensor, "row token"]:
        """Lay a column over tokens out in padded rows, 0 elsewhere."""
        return torch.zeros(self.mask.shape, dtype=column.dtype).masked_scatter(self.mask, column)

    def unpad(self, padded: Float[Tensor, "row token"]) -> Float[Tensor, "entry"]:
        """Undo :meth:`pad`."""
        return padded[self.mask]


class ClippedSurrogate(NamedTuple):
    """The parts of a clipped policy loss, per token.

    Args:
        loss: Minimised value.
        unclipped: The same without any clipping; carries the gradient that clipping takes away.
        clipped: Mask of tokens whose clipped branch was chosen, so that they have no gradient.
        clipped_lower: Mask of tokens whose loss was bounded by the dual clip.
    """

    loss: Float[Tensor, "batch token"]
    unclipped: Float[Tensor, "batch token"]
    clipped: Bool[Tensor, "batch token"]
    clipped_lower: Bool[Tensor, "batch token"]


def clipped_surrogate(
    ratio: Float[Tensor, "batch token"],
    advantages: Float[Tensor, "batch token"],
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float = 0.0,
) -> ClippedSurrogate:
    """Return the negated PPO objective (Schulman et al. 2017) with an optional bound for negative advantages.

        L = max(-A * ratio, -A * clip(ratio, 1 - clip_low, 1 + clip_high))
        L = min(L, -A * dual_clip)    where A < 0

    Args:
        ratio: Importance ratio.
        advantages: Advantage of each token.
        clip_low: Width of the clip range below 1.
        clip_high: Width of the clip range above 1.
        dual_clip: Largest ratio that a negative advantage is multiplied by (Ye et al. 2020); 0 for no bound.

    >>> clipped_surrogate(torch.tensor([[1.5]]), torch.tensor([[1.0]]), clip_low=0.2, clip_high=0.2).loss
    tensor([[-1.2000]])
    """
    unclipped = -advantages * ratio
    inside = -advantages * ratio.clamp(1 - clip_low, 1 + clip_high)
    clipped = inside > unclipped
    loss = torch.maximum(unclipped, inside)
    if not dual_clip:
        return ClippedSurrogate(loss, unclipped, clipped, torch.zeros_like(clipped))
    bound = -advantages * dual_clip
    clipped_lower = (advantages < 0) & (loss > bound)
    return ClippedSurrogate(torch.where(clipped_lower, bound, loss), unclipped, clipped, clipped_lower)


class ValueLoss(NamedTuple):
    """Squared error of the critic per token, and where clipping decided it."""

    loss: Float[Tensor, "batch token"]
    clipped: Bool[Tensor, "batch token"]


def value_loss(
    values: Float[Tensor, "batch token"],
    old_values: Float[Tensor, "batch token"],
    returns: Float[Tensor, "batch token"],
    *,
    clip: float,
) -> ValueLoss:
    """Return half of the larger squared error of the critic and of the critic kept near its old value.

        L = max((V - G)^2, (V_old + clip(V - V_old, -clip, clip) - G)^2) / 2

    Args:
        values: Critic now.
        old_values: Critic at the time of credit assignment.
        returns: Target; nan where the critic is not trained, which gives loss 0.
        clip: Clip range of the value; 0 for no limit.

    >>> value_loss(torch.tensor([[1.0, 0.2]]), torch.zeros(1, 2), torch.ones(1, 2), clip=0.5).loss
    tensor([[0.1250, 0.3200]])
    """
    trained = ~returns.isnan()
    targets = torch.where(trained, returns, values.detach().to(returns.dtype))
    error = (values - targets) ** 2
    near = old_values + (values - old_values).clamp(-clip, clip) if clip else values
    near_error = (near - targets) ** 2
    loss = torch.where(trained, torch.maximum(error, near_error) / 2, torch.zeros_like(error))
    return ValueLoss(loss, trained & (near_error > error))


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


def hinge_penalty(entropy: Tensor, reference: Tensor | float, *, low: float, high: float) -> Tensor:
    """Return how far each entropy is outside of ``[low * reference, high * reference]``; differentiable.

    >>> import torch
    >>> hinge_penalty(torch.tensor([0.2, 0.9, 2.0]), 0.8, low=0.5, high=1.5)
    tensor([0.2000, 0.0000, 0.8000])
    """
    return (low * reference - entropy).clamp_min(0) + (entropy - high * reference).clamp_min(0)


def indicator_penalty(entropy: Tensor, reference: Tensor | float, *, low: float, high: float) -> Tensor:
    """Return 1 where the entropy is outside of ``[low * reference, high * reference]`` and 0 inside.

    Its gradient is 0: it changes the loss that is logged and not the update.
    """
    return ((entropy < low * reference) | (entropy > high * reference)).to(entropy.dtype)


def smoothing_weight(iteration: int, num_iterations: int, *, decay: float) -> float:
    """Return the paper's weight of the penalty: 2 at the start, ``1 + exp(-decay)`` in the middle, tending to 1.

    >>> [round(smoothing_weight(k, 100, decay=3.0), 4) for k in (0, 50)]
    [2.0, 1.0498]
    """
    return 1 + math.exp(-decay * iteration / max(num_iterations // 2, 1))


def released_smoothing_weight(iteration: float, num_iterations: int = 150) -> float:
    """Return the weight that the released code uses instead, with its jump in the middle.

    >>> [round(released_smoothing_weight(e), 3) for e in (0, 74, 75)]
    [1.0, 0.828, 0.8]
    """
    middle = num_iterations / 2
    if iteration < middle:
        return 1 - 0.2 * (1 - math.exp(-2 * iteration / middle))
    return 0.8 * math.exp(-3 * (iteration - middle) / middle)
