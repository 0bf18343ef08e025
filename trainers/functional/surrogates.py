"""Policy losses that clip differently from PPO: CISPO, GMPO, SAPO, LUSPO; and the penalty for overlong completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.lazy import Tensor, torch
from turngym.trainers.functional.losses import ClippedSurrogate, clipped_surrogate
from turngym.trainers.functional.ratios import (
    exp_clamped,
    turn_geometric_ratio,
    turn_geometric_ratio_by_token,
    turn_lengths,
    turn_mean,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def cispo_surrogate(
    ratio: Float[Tensor, "batch token"],
    logprobs: Float[Tensor, "batch token"],
    advantages: Float[Tensor, "batch token"],
    *,
    clip_low: float,
    clip_high: float,
) -> ClippedSurrogate:
    """Return the loss of CISPO (MiniMax-M1, arXiv 2506.13585): the weight is clipped, and no token loses its gradient.

        L = -stop_gradient(clip(ratio, 1 - clip_low, 1 + clip_high)) * A * log p

    Args:
        ratio: Importance ratio; only its value is used.
        logprobs: Log-probability of each token under the current policy; carries the gradient.
        advantages: Advantage of each token.
        clip_low: Width of the range below 1; 1 means no lower end.
        clip_high: Width of the range above 1.

    >>> ratio, logprobs, advantages = torch.tensor([[1.5]]), torch.tensor([[-0.5]]), torch.tensor([[2.0]])
    >>> cispo_surrogate(ratio, logprobs, advantages, clip_low=0.2, clip_high=0.2).loss
    tensor([[1.2000]])
    """
    weight = ratio.detach()
    inside = weight.clamp(1 - clip_low, 1 + clip_high)
    score = -advantages * logprobs
    clipped = inside != weight
    return ClippedSurrogate(inside * score, weight * score, clipped, torch.zeros_like(clipped))


def gmpo_surrogate(
    log_ratio: Float[Tensor, "batch token"],
    advantages: Float[Tensor, "batch token"],
    turn_ids: Int[Tensor, "batch token"],
    *,
    clip_low: float,
    clip_high: float,
) -> ClippedSurrogate:
    """Return the loss of GMPO (arXiv 2507.20673) at each token of a turn: the geometric mean of clipped token ratios.

        e = sign(A) * min(sign(A) * d, sign(A) * clip(d, -clip_low, clip_high))    for each token
        L = -mean(A) * exp(mean(e))                                                over the turn

    Args:
        log_ratio: Log-ratio ``d`` of each token, 0 where nothing was sampled.
        advantages: Advantage of each token.
        turn_ids: Turn of each sampled token, -1 elsewhere.
        clip_low: Width of the clip range of log-ratios below 0.
        clip_high: Width of the clip range of log-ratios above 0.

    >>> log_ratio, turns = torch.tensor([[0.5, -0.1]]), torch.tensor([[0, 0]])
    >>> gmpo_surrogate(log_ratio, torch.ones(1, 2), turns, clip_low=0.4, clip_high=0.4).loss
    tensor([[-1.1618, -1.1618]])
    """
    sign = advantages.sign()
    kept = sign * torch.minimum(sign * log_ratio, sign * log_ratio.clamp(-clip_low, clip_high))
    clipped = (kept != log_ratio) & (sign != 0)
    whole = turn_mean(advantages, turn_ids)
    loss = -whole * exp_clamped(turn_mean(kept, turn_ids))
    unclipped = -whole * turn_geometric_ratio_by_token(log_ratio, turn_ids)
    return ClippedSurrogate(loss, unclipped, clipped, torch.zeros_like(clipped))


def sapo_loss(
    ratio: Float[Tensor, "batch token"],
    advantages: Float[Tensor, "batch token"],
    *,
    temperature_positive: float = 1.0,
    temperature_negative: float = 1.05,
) -> Float[Tensor, "batch token"]:
    """Return the loss of SAPO (arXiv 2511.20347): a smooth gate replaces the clip.

        L = -A * sigmoid(t * (ratio - 1)) * 4 / t        with t chosen by the sign of A

    Args:
        ratio: Importance ratio.
        advantages: Advantage of each token.
        temperature_positive: ``t`` where the advantage is above 0.
        temperature_negative: ``t`` elsewhere; higher, so that those gradients fade sooner.

    >>> sapo_loss(torch.tensor([[1.0]]), torch.tensor([[3.0]]))
    tensor([[-6.]])
    """
    positive = torch.full_like(ratio, temperature_positive)
    temperature = torch.where(advantages > 0, positive, torch.full_like(ratio, temperature_negative))
    return -advantages * torch.sigmoid(temperature * (ratio - 1)) * 4 / temperature


def luspo_surrogate(
    log_ratio: Float[Tensor, "batch token"],
    advantages: Float[Tensor, "batch token"],
    turn_ids: Int[Tensor, "batch token"],
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float = 0.0,
) -> ClippedSurrogate:
    """Return the loss of LUSPO (arXiv 2602.05261) at each token: GSPO's of the whole turn times the turn's length.

    Averaged over turns, every token then weighs the same.

    Args:
        log_ratio: Log-ratio of each token, 0 where nothing was sampled.
        advantages: Advantage of each token, the same for the tokens of a turn.
        turn_ids: Turn of each sampled token, -1 elsewhere.
        clip_low: Width of the clip range below 1.
        clip_high: Width of the clip range above 1.
        dual_clip: Maximum ratio for negative advantages; 0 for no bound.
    """
    ratio = turn_geometric_ratio(log_ratio, turn_ids)
    found = clipped_surrogate(ratio, advantages, clip_low=clip_low, clip_high=clip_high, dual_clip=dual_clip)
    length = turn_lengths(turn_ids, ratio.dtype)
    return found._replace(loss=found.loss * length, unclipped=found.unclipped * length)


def overlong_penalty(
    lengths: Float[Tensor, "item"], *, limit: float, buffer: float, factor: float = 1.0
) -> Float[Tensor, "item"]:
    """Return DAPO's reward for lengths: 0 up to ``limit - buffer``, then falling evenly to ``-factor`` at ``limit``.

    >>> overlong_penalty(torch.tensor([70.0, 80.0, 90.0, 100.0]), limit=100, buffer=20)
    tensor([ 0.0000,  0.0000, -0.5000, -1.0000])
    """
    return (limit - buffer - lengths).clamp_max(0) / buffer * factor
