"""Token generation with a transformers model: every distinct prefix goes through the network once.

Rows of a batch that have the same prompt and the same tokens so far share one row of the network's batch; a row
splits off when its sampled token differs. The result is that of row-by-row sampling, token for token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from turngym.agents.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """Sampled token ids and the sampler's log-probabilities, temperature included."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def sampling_logprobs(logits: Tensor, temperature: float) -> Tensor:
    """Return log-probabilities of the distribution that is sampled from.

    Greedy sampling (temperature 0) reports those of the untempered distribution.
    """
    return torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)


def choose(logprobs: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """Pick one token a row by inverting the cumulative distribution; greedy at temperature 0.

    Args:
        logprobs: ``[row, vocab]``.
        uniforms: ``[row]``, in [0, 1).
        sampling: Temperature and top-p; the temperature itself is already in ``logprobs``.
    """
    if sampling.temperature == 0:
        return logprobs.argmax(dim=-1)
    probabilities = logprobs.double().exp()
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        keep = ordered.cumsum(dim=-1) - ordered < sampling.top_p
        probabilities = torch.zeros_like(probabilities).scatter_(-1, order, ordered * keep)
    cumulative = probabilities.cumsum(dim=-1)
    threshold = uniforms[:, None].to(cumulative) * cumulative[:, -1:]
    index = torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)
    last = (probabilities > 0).to(torch.int8).flip(-1).argmax(dim=-1)  # never past the last token with any probability
    return torch.minimum(index, probabilities.shape[-1] - 1 - last)


def generate(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    uniforms: Sequence[NDArray[np.float64]],
    sampling: Sampling,
    stop_ids: frozenset[int],
    max_rows: int = 512,
) -> list[Completion]:
    """Sample one completion for each prompt.

    Args:
        model: A causal language model.
        prompts: Token ids, no prompt empty.
        uniforms: One array of at least ``max_new_tokens`` numbers for each prompt.
        sampling: Temperature, top-p, length limit.
        stop_ids: Tokens that end a completion; the one sampled is part of it.
        max_rows: Distinct prompts that go through the network together.
    """
    order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), tuple(prompts[i])))
    results: list[Completion | None] = [None] * len(prompts)
    chunk: list[int] = []
    distinct: set[tuple[int, ...]] = set()
    for i in order:
        key = tuple(prompts[i])
        if key not in distinct and len(distinct) == max_rows:
            _generate_chunk(model, prompts, uniforms, sampling, stop_ids, chunk, results)
            chunk, distinct = [], set()
        distinct.add(key)
        chunk.append(i)
    if chunk:
        _generate_chunk(model, prompts, uniforms, sampling, stop_ids, chunk, results)
    return [completion for completion in results if completion is not None]


@torch.inference_mode()
def _generate_chunk(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    uniforms: Sequence[NDArray[np.float64]],
    sampling: Sampling,
    stop_ids: frozenset[int],
    members: list[int],
    results: list[Completion | None],
) -> None:
    device = model.device
    states: dict[tuple[int, ...], int] = {}
    state_of = [states.setdefault(tuple(prompts[i]), len(states)) for i in members]
    prefix = _Prefix(model, list(states))
    draws = torch.from_numpy(np.stack([uniforms[i][: sampling.max_new_tokens] for i in members])).to(device)
    ids: list[list[int]] = [[] for _ in members]
    logprobs: list[list[float]] = [[] for _ in members]
    running = list(range(len(members)))
    for position in range(sampling.max_new_tokens):
        rows = torch.tensor([state_of[r] for r in running], device=device)
        distribution = sampling_logprobs(prefix.logits, sampling.temperature)[rows]
        tokens = choose(distribution, draws[running, position], sampling)
        chosen = distribution.gather(-1, tokens[:, None]).squeeze(-1).tolist()
        for r, token, logprob in zip(running, tokens.tolist(), chosen, strict=True):
            ids[r].append(token)
            logprobs[r].append(logprob)
        running = [r for r in running if ids[r][-1] not in stop_ids]
        if not running or position + 1 == sampling.max_new_tokens:
            break
        children: dict[tuple[int, int], int] = {}
        for r in running:
            state_of[r] = children.setdefault((state_of[r], ids[r][-1]), len(children))
        prefix.extend([parent for parent, _ in children], [token for _, token in children])
    for r, i in enumerate(members):
        results[i] = Completion(tuple(ids[r]), tuple(logprobs[r]))


class _Prefix:
    """The network's state for a set of distinct prefixes: its cache, and the logits of each one's next token."""

    def __init__(self, model: PreTrainedModel, prompts: list[tuple[int, ...]]) -> None:
        self.model = model
        longest = max(map(len, prompts))
        device = model.device
        ids = torch.tensor([[0] * (longest - len(p)) + list(p) for p in prompts], device=device)
        lengths = torch.tensor([len(p) for p in prompts], device=device)
        self.mask = (torch.arange(longest, device=device)[None, :] >= longest - lengths[:, None]).long()
        self.lengths = lengths
        self.cache = DynamicCache(config=model.config)
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)
        self.logits = self._forward(ids, positions)

    def extend(self, parents: list[int], tokens: list[int]) -> None:
        """Go on from ``parents`` with one more token each."""
        device = self.model.device
        index = torch.tensor(parents, device=device)
        if parents != list(range(len(self.mask))):
            self.cache.batch_select_indices(index)
            self.mask, self.lengths = self.mask[index], self.lengths[index]
        positions = self.lengths[:, None]
        self.lengths = self.lengths + 1
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=-1)
        self.logits = self._forward(torch.tensor(tokens, device=device)[:, None], positions)

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        padded = bool((self.mask == 0).any())
        output: Any = self.model(
            input_ids=ids,
            attention_mask=self.mask if padded else None,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[:, -1]
        return logits
