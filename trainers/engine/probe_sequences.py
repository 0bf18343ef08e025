"""Fixed token sequences and their scores, which identify a network's weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.weights import evaluating

_LENGTH = 160
"""Longer than a block of 128 tokens, which servers keep in their KV cache across prompts."""
_LEAST, _MOST = 4, 8


def probe_sequences(vocabulary: int, longest: int = 0, avoid: Collection[int] = ()) -> list[list[int]]:
    """Return the sequences of a probe: the vocabulary in a fixed random order, repeated to fill them.

    A vocabulary of up to 1,280 tokens is covered, a larger one in part.

    Args:
        vocabulary: Number of tokens.
        longest: Sampler's maximum length of prompt plus completion; 0 for any.
        avoid: Placeholder tokens to exclude, such as those of images.

    >>> found = probe_sequences(512)
    >>> len(found), {len(each) for each in found}, set(range(512)) <= {token for each in found for token in each}
    (4, {160}, True)
    """
    length = min(_LENGTH, longest - 2) if longest else _LENGTH
    count = min(max(_LEAST, math.ceil(vocabulary / length)), _MOST)
    random = torch.Generator().manual_seed(2026)
    usable = torch.tensor([token for token in range(vocabulary) if token not in set(avoid)])
    rounds = math.ceil(count * length / len(usable))
    order = torch.cat([usable[torch.randperm(len(usable), generator=random)] for _ in range(rounds)])
    return [row.tolist() for row in order[: count * length].view(count, length)]


@torch.no_grad()
def probe_scores(network: PreTrainedModel, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return a network's scores of sequences, one at a time, without a KV cache.

    Args:
        network: The network.
        sequences: The sequences.

    Returns:
        Log-probability of each token but the first of each sequence, concatenated, as float64 on the CPU; and the
        logits after each sequence, ``[sequence, vocabulary]``.
    """
    scores, last = [], []
    with evaluating(network):
        for ids in sequences:
            logits = network(torch.tensor([ids], device=network.device), use_cache=False).logits[0].float()
            logprobs = logits[:-1].log_softmax(-1)
            scores.append(logprobs.gather(-1, torch.tensor(ids[1:], device=logits.device)[:, None])[:, 0])
            last.append(logits[-1])
    return torch.cat(scores).double().cpu(), torch.stack(last)
