"""Log-probabilities of given tokens, computed by the network anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from turngym.agents.models.cache_keyword import cache_keyword
from turngym.agents.models.weights import evaluating

_CHUNK = 128
"""Tokens that go through the network at once: their distributions must fit into memory."""


@torch.inference_mode()
def token_logprobs(network: PreTrainedModel, ids: Sequence[int]) -> tuple[float, ...]:
    """Return the log-probability of each token but the first after those before it, at temperature 1.

    Args:
        network: A causal language model with a key-value cache.
        ids: The sequence.
    """
    given = torch.tensor([list(ids)], device=network.device)
    cache = DynamicCache(config=network.config)
    held = {cache_keyword(type(network)) or "past_key_values": cache}
    found: list[float] = []
    with evaluating(network):
        for start in range(0, len(ids) - 1, _CHUNK):
            piece = given[:, start : min(start + _CHUNK, len(ids) - 1)]
            output: Any = network(input_ids=piece, **held, use_cache=True)
            logprobs = torch.log_softmax(output.logits[0].float(), dim=-1)
            following = given[0, start + 1 : start + 1 + piece.shape[1], None]
            found += logprobs.gather(-1, following)[:, 0].tolist()
    return tuple(found)
