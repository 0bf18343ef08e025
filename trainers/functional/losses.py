"""Per-token losses: the clipped surrogate of PPO with dual clip, and the clipped value loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


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
