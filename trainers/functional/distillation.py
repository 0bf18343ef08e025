"""Learning from a teacher's log-probabilities of tokens that the policy sampled (on-policy distillation)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from turngym.lazy import Tensor, torch
from turngym.trainers.core.algorithm import Divergence
from turngym.trainers.functional.gae import discounted_returns
from turngym.trainers.functional.losses import ClippedSurrogate
from turngym.trainers.functional.ratios import exp_clamped

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def distillation_surrogate(
    log_ratio: Float[Tensor, "batch token"],
    gaps: Float[Tensor, "batch token"],
    behaviour_logprobs: Float[Tensor, "batch token"],
    *,
    drop: float,
) -> ClippedSurrogate:
    """Return minus the gap to the teacher times the importance ratio, per token.

    Args:
        log_ratio: Log-probability under the policy minus that under the sampler; carries gradients, not clamped.
        gaps: The teacher's log-probability minus the sampler's.
        behaviour_logprobs: Log-probability under the sampler.
        drop: Tokens whose probability fell by more than that since they were sampled have no gradient.

    >>> old = torch.tensor([[-0.1, -0.1]])
    >>> found = distillation_surrogate(torch.tensor([[0.0, -1.0]]), torch.tensor([[0.5, 0.5]]), old, drop=0.2)
    >>> found.loss.tolist(), found.clipped.tolist()
    ([[-0.5, -0.0]], [[False, True]])
    """
    ratio = log_ratio.exp()
    signal = (gaps - log_ratio).detach()  # to the policy as it is now
    change = (behaviour_logprobs + log_ratio.detach()).exp() - behaviour_logprobs.exp()
    dropped = change < -drop
    unclipped = -signal * ratio
    return ClippedSurrogate(unclipped * ~dropped, unclipped, dropped, torch.zeros_like(dropped))


def discounted_rest(
    values: Float[Tensor, "token"], segments: Int[Tensor, "token"], *, gamma: float
) -> Float[Tensor, "token"]:
    """Return the discounted sum of each token's value and those after it in its segment.

    Args:
        values: One value a token.
        segments: Segment of each token, non-decreasing.
        gamma: Discount per token; 0 keeps each token's own value.

    >>> discounted_rest(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 0, 1]), gamma=0.5)
    tensor([2., 2., 4.])
    """
    if gamma == 0 or not len(values):
        return values.clone()
    _, counts = torch.unique_consecutive(segments, return_counts=True)
    mask = torch.arange(int(counts.max()))[None] < counts[:, None]
    padded = torch.zeros(mask.shape, dtype=values.dtype)
    padded[mask] = values
    return discounted_returns(padded, mask, gamma=gamma)[mask]


def remaining_gap_weights(
    gaps: Float[Tensor, "token"], segments: Int[Tensor, "token"], *, gamma: float, epsilon: float = 1e-8
) -> Float[Tensor, "token"]:
    """Return ``1 + gamma * (1 - share)``, with the share of its segment's gaps, in size, that lies before a token.

    Args:
        gaps: The teacher's log-probability of each token minus the sampler's.
        segments: Segment of each token, non-decreasing.
        gamma: Additional weight of a token with all of the gap ahead of it.
        epsilon: Smallest total of a segment.

    >>> remaining_gap_weights(torch.tensor([1.0, -3.0, 5.0]), torch.tensor([0, 0, 1]), gamma=0.5)
    tensor([1.5000, 1.3750, 1.5000])
    """
    _, index = torch.unique_consecutive(segments, return_inverse=True)
    size = int(index[-1]) + 1 if len(index) else 0
    absolute = gaps.abs()
    total = gaps.new_zeros(size).index_add(0, index, absolute)
    earlier = torch.cumsum(total, 0) - total
    before = torch.cumsum(absolute, 0) - absolute - earlier[index]
    return 1 + gamma * (1 - before / total.clamp_min(epsilon)[index])


def self_distillation(
    logprobs: Float[Tensor, "batch token"],
    teacher_logprobs: Float[Tensor, "batch token"],
    old_logprobs: Float[Tensor, "batch token"],
    *,
    cap: float,
) -> Float[Tensor, "batch token"]:
    """Return the log-probability of each token times its detached, weighted gap to the teacher.

    Args:
        logprobs: Log-probability under the policy; carries gradients.
        teacher_logprobs: Log-probability under the teacher.
        old_logprobs: Log-probability under the policy that ratios are taken against.
        cap: Maximum ratio of policy and old policy that weighs a token; 0 for no weight.

    >>> self_distillation(torch.tensor([-1.0]), torch.tensor([-3.0]), torch.tensor([-2.0]), cap=2.0)
    tensor([-4.])
    """
    weight = exp_clamped((logprobs - old_logprobs).detach()).clamp_max(cap) if cap else 1.0
    return (logprobs - teacher_logprobs).detach() * weight * logprobs


def vocabulary_divergence(
    logits: Float[Tensor, "*place word"], teacher_logits: Float[Tensor, "*place word"], form: Divergence
) -> Float[Tensor, "*place"]:
    """Return the divergence between the distributions of policy and teacher at each place, in nats.

    Args:
        logits: Logits of the policy, temperature included; carry gradients.
        teacher_logits: Logits of the teacher.
        form: The divergence.

    >>> p, q = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    >>> [round(float(vocabulary_divergence(p, q, Divergence(beta))), 4) for beta in (0.0, 0.5, 1.0)]
    [0.3681, 0.1017, 0.5108]
    """
    p, q = torch.log_softmax(logits, -1), torch.log_softmax(teacher_logits, -1)
    if form.top:
        count = min(form.top, p.shape[-1])
        likeliest = (p if form.of == "student" else q).detach().topk(count, dim=-1).indices
        p, q = (_reduced(each.gather(-1, likeliest), form.tail) for each in (p, q))
    if form.beta == 0:
        return _kl(q, p)
    if form.beta == 1:
        return _kl(p, q)
    mixture = torch.logaddexp(p + math.log1p(-form.beta), q + math.log(form.beta))
    return form.beta * _kl(q, mixture) + (1 - form.beta) * _kl(p, mixture)


def _kl(one: Tensor, other: Tensor) -> Tensor:
    return (one.exp() * (one - other)).sum(-1)


def _reduced(logprobs: Tensor, has_tail: bool) -> Tensor:
    """Renormalise the log-probabilities of some tokens, or add that of all other tokens."""
    if not has_tail:
        return torch.log_softmax(logprobs, -1)
    rest = torch.logsumexp(logprobs, -1, keepdim=True).clamp_max(-1e-7)
    return torch.cat([logprobs, torch.log(-torch.expm1(rest))], -1)
