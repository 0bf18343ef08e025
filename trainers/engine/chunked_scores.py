"""Log-probabilities and entropies of tokens from hidden states, computed in chunks to bound the memory of logits.

``torch.nn.functional.linear_cross_entropy`` also works in chunks, but does not return entropies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from turngym.trainers.engine.head import Head

BUDGET = 256 * 2**20
"""Size of a chunk's buffers on a CPU, in bytes."""
GPU_BUDGET = 4 * 2**30
LEAST = 128
"""Minimum number of states per chunk; with fewer, the gradient of the head dominates the time."""
_BUFFERS = 4


class FlatScores(NamedTuple):
    """Log-probability of each target, and entropy of its distribution in nats."""

    logprobs: Float[Tensor, "read"]
    entropy: Float[Tensor, "read"] | None


def chunk_size(words: int, budget: int = BUDGET) -> int:
    """Return the number of states per chunk, by vocabulary size.

    >>> chunk_size(151_936), chunk_size(49_152), chunk_size(512)
    (128, 341, 32768)
    """
    return max(LEAST, budget // (4 * _BUFFERS * words))


def flat_scores(
    head: Head,
    hidden: Float[Tensor, "state width"],
    state: Int[Tensor, "read"],
    targets: Int[Tensor, "read"],
    temperature: float = 1.0,
    with_entropy: bool = False,
    chunk: int = 0,
) -> FlatScores:
    """Return log-probabilities of targets, and entropies, under the sampling distribution.

    If all states, or all reads, fit into one chunk, their logits are stored for the backward pass. Otherwise they are
    recomputed there, and at most one chunk of them is held.

    Args:
        head: Module that maps hidden states to logits.
        hidden: Hidden states.
        state: Index of the state of each read.
        targets: The token after each read; for -1 the result is 0.
        temperature: The sampler's temperature; the logits are divided by it.
        with_entropy: Also return entropies.
        chunk: Number of states per chunk; 0 for :func:`chunk_size`.
    """
    size = chunk or chunk_size(head.words, BUDGET if hidden.device.type == "cpu" else GPU_BUDGET)
    words, divisor = targets.clamp(min=0), temperature or 1.0
    if len(hidden) > size:
        hidden, state = hidden.index_select(0, state), torch.arange(len(state), device=state.device)
    if len(hidden) > size:
        logprobs, entropy = _in_chunks(head, hidden, words, divisor, with_entropy, size)
    else:
        logprobs, entropy = _dense(head, hidden, state, words, divisor, with_entropy)
    return FlatScores(logprobs * (targets >= 0), entropy * (targets >= 0) if with_entropy else None)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _dense(
    head: Head, hidden: Tensor, state: Tensor, words: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor]:
    logits = head.logits(hidden).index_select(0, state)
    distribution = torch.log_softmax(_wide(logits) / temperature, dim=-1)
    logprobs = distribution.gather(-1, words[:, None]).squeeze(-1)
    return logprobs, -(distribution.exp() * distribution).sum(-1) if with_entropy else logprobs


def _in_chunks(
    head: Head, hidden: Tensor, words: Tensor, temperature: float, with_entropy: bool, size: int
) -> tuple[Tensor, Tensor]:
    device = hidden.device.type
    compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    settings = _Settings(temperature, head.scale, head.softcap, with_entropy, size, compute)
    with torch.autocast(device, enabled=False):
        factors = [tensor for pair in head.factors(hidden) for tensor in pair]
    apply: Any = _ChunkedScores.apply
    logprobs, entropy = apply(settings, words, head.bias, *factors)
    return logprobs, entropy


class _Settings(NamedTuple):
    temperature: float
    scale: float
    softcap: float
    with_entropy: bool
    chunk: int
    compute: torch.dtype | None
    """Data type of the products; None for that of each matrix."""


class _ChunkedScores(torch.autograd.Function):
    """Scores from states and matrices whose products sum to the logits; logits are recomputed in the backward pass."""

    @staticmethod
    def forward(ctx: Any, settings: _Settings, targets: Tensor, bias: Tensor | None, *factors: Tensor) -> Any:
        wide = torch.promote_types(factors[1].dtype, torch.float32)
        lse, logprobs, entropy = (factors[0].new_zeros(len(targets), dtype=wide) for _ in range(3))
        for part, logits, buffer in _parts(settings, len(targets), lse, factors):
            z = _logits(settings, bias, factors, part, logits).div_(settings.temperature)
            largest = z.amax(-1, keepdim=True)
            weights = torch.sub(z, largest, out=buffer).exp_()
            total = weights.sum(-1)
            lse[part] = total.log() + largest.squeeze(-1)
            logprobs[part] = z.gather(1, targets[part, None]).squeeze(1) - lse[part]
            if settings.with_entropy:
                entropy[part] = lse[part] - weights.mul_(z).sum(-1) / total
        ctx.save_for_backward(targets, lse, entropy, bias, *factors)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        settings: _Settings = ctx.settings
        targets, lse, entropy, bias, *factors = ctx.saved_tensors
        given = [torch.zeros_like(lse) if g is None else g for g in gradients]
        needed = ctx.needs_input_grad[2:]
        found = [_zeros(t, needs, lse.dtype) for t, needs in zip([bias, *factors], needed, strict=True)]
        with torch.autocast(lse.device.type, enabled=False):
            for part, logits, buffer in _parts(settings, len(targets), lse, factors):
                z = _logits(settings, bias, factors, part, logits)
                of_each = (targets[part], lse[part], entropy[part], *(g[part] for g in given))
                _add(settings, found, _gradient(settings, z, buffer, *of_each), factors, part)
        return None, None, *(_as(g, t) for g, t in zip(found, [bias, *factors], strict=True))


Factors: TypeAlias = Sequence[Tensor]
"""States and matrices, alternating."""


def _parts(settings: _Settings, count: int, like: Tensor, factors: Factors) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield each chunk with two buffers of its logits' shape, which all chunks share."""
    logits, buffer = (like.new_empty(min(settings.chunk, count), len(factors[1])) for _ in range(2))
    for start in range(0, count, settings.chunk):
        size = min(settings.chunk, count - start)
        yield slice(start, start + size), logits[:size], buffer[:size]


def _zeros(like: Tensor | None, needed: bool, dtype: torch.dtype) -> Tensor | None:
    return torch.zeros_like(like, dtype=dtype) if like is not None and needed else None


def _as(gradient: Tensor | None, like: Tensor | None) -> Tensor | None:
    return None if gradient is None or like is None else gradient.to(like.dtype)


def _logits(settings: _Settings, bias: Tensor | None, factors: Factors, part: slice, out: Tensor) -> Tensor:
    """Write the logits of one chunk, before the temperature, in float32 or float64."""
    with torch.autocast(out.device.type, enabled=False):
        for number, (states, matrix) in enumerate(zip(factors[::2], factors[1::2], strict=True)):
            dtype = settings.compute or matrix.dtype
            left, right = states[part].to(dtype), matrix.to(dtype).T
            if number:
                out += left @ right
            elif dtype == out.dtype:
                torch.mm(left, right, out=out)
            else:
                out.copy_(left @ right)
    if bias is not None:
        out += bias
    if settings.scale != 1:
        out *= settings.scale
    if settings.softcap:
        out.div_(settings.softcap).tanh_().mul_(settings.softcap)
    return out


def _gradient(
    settings: _Settings,
    z: Tensor,
    buffer: Tensor,
    targets: Tensor,
    lse: Tensor,
    entropy: Tensor,
    of_logprobs: Tensor,
    of_entropy: Tensor,
) -> Tensor:
    """Return the gradient of the products in the buffer; overwrites the logits.

    The gradient of log p by the logits is onehot - p, and that of the entropy is -p (log p + entropy).
    """
    slope = (z / settings.softcap).square_().neg_().add_(1) if settings.softcap else None
    logq = z.div_(settings.temperature).sub_(lse[:, None])
    g = torch.exp(logq, out=buffer)
    g *= logq.add_(entropy[:, None]).mul_(-of_entropy[:, None]).sub_(of_logprobs[:, None])
    g.scatter_add_(1, targets[:, None], of_logprobs[:, None])
    g *= settings.scale / settings.temperature
    return g if slope is None else g.mul_(slope)


def _add(settings: _Settings, found: Sequence[Tensor | None], gradient: Tensor, factors: Factors, part: slice) -> None:
    """Add the contribution of one chunk to the gradients of bias, states and matrices."""
    of_bias, *of_factors = found
    if of_bias is not None:
        of_bias += gradient.sum(0)
    for k in range(0, len(factors), 2):
        states, matrix, of_states, of_matrix = factors[k], factors[k + 1], of_factors[k], of_factors[k + 1]
        dtype = settings.compute or matrix.dtype
        g = gradient.to(dtype)
        if of_states is not None:
            of_states[part] = g @ matrix.to(dtype)
        if of_matrix is not None and of_matrix.dtype == dtype:
            of_matrix.addmm_(g.T, states[part].to(dtype))
        elif of_matrix is not None:
            of_matrix += g.T @ states[part].to(dtype)
