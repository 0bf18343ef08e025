"""Distributions of the next token: log-probabilities, entropies, and the choice of a token by a random number."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from turngym.agents.sampling import Sampling

_BLOCK = 256
_MIN_TWO_LEVEL = 4096
"""Smaller vocabularies are searched directly, which is as fast."""
_MARGIN = 5e-7
"""Bound of the relative error of sums in float32: draws closer than that to a border are decided in float64."""


def sampling_logprobs(logits: Tensor, temperature: float) -> Tensor:
    """Return log-probabilities of the distribution that is sampled from.

    Greedy sampling (temperature 0) reports those of the untempered distribution.
    """
    return torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)


def entropy_share(logprobs: Tensor) -> Tensor:
    """Return the entropy of each distribution over that of the uniform one, in [0, 1].

    Probabilities 1/2, 1/4 and 1/4 among 100 tokens:

    >>> probabilities = torch.tensor([0.5, 0.25, 0.25] + [0.0] * 97)
    >>> round(float(entropy_share(probabilities.log())), 4)
    0.2258
    """
    entropy: Tensor = torch.special.entr(logprobs.exp()).sum(-1)
    return entropy / math.log(max(logprobs.shape[-1], 2))


def choose(logprobs: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """Pick one token for each sequence by inverting the cumulative distribution; greedy at temperature 0.

    Args:
        logprobs: ``[row, vocab]``.
        uniforms: ``[row]``, in [0, 1).
        sampling: Temperature and top-p; the temperature itself is already in ``logprobs``.
    """
    if sampling.temperature == 0:
        return logprobs.argmax(dim=-1)
    if sampling.top_p < 1 or logprobs.shape[-1] < _MIN_TWO_LEVEL or logprobs.dtype != torch.float32:
        return _search(logprobs, uniforms, sampling.top_p)
    if logprobs.device.type != "cpu":  # a look at the numbers would wait for the device, and float64 is cheap there
        return _two_level_search(logprobs.double(), uniforms)[0]
    tokens, is_close = _two_level_search(logprobs, uniforms)
    if bool(is_close.any()):
        tokens[is_close] = _search(logprobs[is_close], uniforms[is_close], 1.0)
    return tokens


def _search(logprobs: Tensor, uniforms: Tensor, top_p: float) -> Tensor:
    """Search the whole cumulative distribution in float64."""
    probabilities = logprobs.double().exp()
    if top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        keep = ordered.cumsum(dim=-1) - ordered < top_p
        probabilities = torch.zeros_like(probabilities).scatter_(-1, order, ordered * keep)
    cumulative = probabilities.cumsum(dim=-1)
    threshold = uniforms[:, None].to(cumulative) * cumulative[:, -1:]
    index = torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)
    last = (probabilities > 0).to(torch.int8).flip(-1).argmax(dim=-1)  # never past the last token with any probability
    return torch.minimum(index, probabilities.shape[-1] - 1 - last)


def _two_level_search(logprobs: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Search the sums of blocks, then one block; return tokens, and whether a draw is too close to a border.

    Exponentials and sums are those of float32, so that a draw near a border may fall on its other side: such draws are
    marked.
    """
    vocabulary = logprobs.shape[-1]
    probabilities = logprobs.exp()
    whole = vocabulary // _BLOCK * _BLOCK
    sums = probabilities[:, :whole].unflatten(-1, (-1, _BLOCK)).sum(-1)
    if whole < vocabulary:
        sums = torch.cat([sums, probabilities[:, whole:].sum(-1, keepdim=True)], dim=-1)
    cumulative = torch.nn.functional.pad(sums.double().cumsum(-1), (1, 0))
    total = cumulative[:, -1:]
    threshold = uniforms[:, None].to(cumulative) * total
    block = torch.searchsorted(cumulative, threshold, right=True).clamp_(1, sums.shape[-1]) - 1
    columns = block * _BLOCK + torch.arange(_BLOCK, device=block.device)
    inside = probabilities.gather(-1, columns.clamp(max=vocabulary - 1)).double() * (columns < vocabulary)
    borders = cumulative.gather(-1, block) + torch.nn.functional.pad(inside.cumsum(-1), (1, 0))
    index = torch.searchsorted(borders, threshold, right=True).clamp_(1, _BLOCK)
    nearest = torch.cat([threshold - borders.gather(-1, index - 1), borders.gather(-1, index) - threshold], dim=-1)
    is_close = (nearest.abs() < _MARGIN * total).any(-1) | (threshold > total * (1 - _MARGIN)).squeeze(-1)
    return (block * _BLOCK + index - 1).squeeze(-1).clamp(max=vocabulary - 1), is_close
