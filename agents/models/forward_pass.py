"""Forward passes: the keyword of the key-value cache, and the logits or hidden states of last tokens alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

_NAMES = ("cache", "past_key_values")
"""In transformers from 5.24 on, and before."""


def cache_keyword(kind: type[PreTrainedModel]) -> str | None:
    """Return the name of a forward's argument for the cache, or None if it takes none.

    Args:
        kind: Class of the network.

    Example:
        >>> from transformers import GPT2LMHeadModel
        >>> cache_keyword(GPT2LMHeadModel) in ("cache", "past_key_values")
        True
    """
    taken = forward_arguments(kind)
    return next((name for name in _NAMES if name in taken), None)


def forward_arguments(kind: type[PreTrainedModel]) -> frozenset[str]:
    """Return the names of a forward's arguments; those that it takes as ``**kwargs`` are not among them."""
    return _arguments(kind.forward)


@functools.cache
def _arguments(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def last_states(backbone: Any, ids: Sequence[Sequence[int]]) -> Tensor:
    """Return ``[text, hidden]``, the last hidden state of each text, which are padded on the right.

    Args:
        backbone: The transformer without its output layer.
        ids: Tokens of each text, one at least.
    """
    device, longest = next(backbone.parameters()).device, max(map(len, ids))
    padded = torch.tensor([[*each, *[0] * (longest - len(each))] for each in ids], device=device)
    last = torch.tensor([len(each) - 1 for each in ids], device=device)
    mask = (torch.arange(longest, device=device)[None, :] <= last[:, None]).long()
    found: Tensor = backbone(input_ids=padded, attention_mask=mask, use_cache=False).last_hidden_state
    return found[torch.arange(len(ids), device=device), last]


_SIXTEEN_BITS = 2
"""Bytes of a number. In float32 the last bits of the product would change, so it is left as it is."""


def last_logits(network: PreTrainedModel, cache: Cache, **inputs: Any) -> Tensor:
    """Run a network with a cache; returns ``[row, vocab]``, the logits of the last token of each row.

    See :func:`logits_of_last`.
    """
    return logits_of_last(1, network, cache, **inputs)[:, -1]


def logits_of_last(count: int, network: PreTrainedModel, cache: Cache, **inputs: Any) -> Tensor:
    """Run a network with a cache; returns ``[row, token, vocab]``, the logits of the last tokens of each row.

    What is left of the hidden states is not contiguous, and torch then multiplies it with a copy of the weights for
    each row: gigabytes for a large vocabulary, in 16 bits a hundred times slower than the product itself.

    Args:
        count: Number of tokens.
        network: A causal language model.
        cache: Tokens of the rows computed so far; extended in place.
        inputs: Argument.
    """
    head = network.get_output_embeddings()
    hook = head.register_forward_pre_hook(_contiguous) if isinstance(head, nn.Module) else None
    try:
        held = {cache_keyword(type(network)) or "past_key_values": cache}
        output: Any = network(**inputs, **held, use_cache=True, logits_to_keep=count)
    finally:
        if hook is not None:
            hook.remove()
    logits: Tensor = output.logits[:, -count:]
    return logits


def _contiguous(_head: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return 16-bit hidden states in one piece of memory; the logits are the same to the bit."""
    return tuple(
        each.contiguous() if isinstance(each, Tensor) and each.itemsize <= _SIXTEEN_BITS else each for each in arguments
    )
