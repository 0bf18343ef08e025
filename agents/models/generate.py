"""Token generation with a transformers model: every distinct prefix goes through the network once.

Completions with the same prompt and the same tokens so far share one sequence in the network's batch; a completion
splits off when its sampled token differs. A memo keeps the distributions of prefixes for later calls, which pays off if
states repeat and the vocabulary is small. The result equals that of sampling each completion alone, token for token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from turngym.agents.models.completion import Completion, Generate
from turngym.agents.models.distributions import choose, entropy_share, sampling_logprobs
from turngym.agents.models.forward_pass import last_logits
from turngym.agents.models.kv_cache.requests import CacheCounts
from turngym.agents.models.weights import WeightsWatch, evaluating
from turngym.agents.sampling import Sampling

__all__ = ["Completion", "Generate", "Memo", "choose", "entropy_share", "generate", "sampling_logprobs"]


class Memo:
    """Cache of next-token distributions of prefixes, for one temperature, until the network's weights change.

    Args:
        max_bytes: Size above which nothing more is added; a large vocabulary fills it at once.
    """

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        self.max_bytes = max_bytes
        self._rows: dict[tuple[int, ...], Tensor] = {}
        self._bytes = 0
        self._watch = WeightsWatch()
        self._temperature = -1.0

    def prepare(self, model: PreTrainedModel, temperature: float) -> None:
        """Clear the cache if the weights or the temperature have changed."""
        if self._watch.has_changed(model) or temperature != self._temperature:
            self._rows, self._bytes, self._temperature = {}, 0, temperature

    def get(self, prefix: tuple[int, ...]) -> Tensor | None:
        """Return the log-probabilities of the token after ``prefix``, ``[vocab]``."""
        return self._rows.get(prefix)

    def add(self, prefixes: Iterable[tuple[int, ...]], logprobs: Tensor) -> None:
        """Keep the log-probabilities of some prefixes, ``[prefix, vocab]``."""
        for prefix, row in zip(prefixes, logprobs, strict=True):
            size = row.numel() * row.element_size()
            if self._bytes + size > self.max_bytes:
                return
            self._rows[prefix] = row.clone()  # a view would keep the whole block alive
            self._bytes += size

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class Blend:
    """A second network whose distributions are mixed in, see :mod:`turngym.agents.models.mixture`.

    Args:
        network: The network; may be the first one in another state.
        weight: Exponent of its probabilities; those of the first network get the rest.
        memo: Distributions known from earlier calls.
        ready: Returns the context in which it computes.
    """

    network: PreTrainedModel
    weight: float
    memo: Memo
    ready: Callable[[], AbstractContextManager[object]] = nullcontext


def generate(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    uniforms: Sequence[NDArray[np.float64]],
    sampling: Sampling,
    stop_ids: frozenset[int],
    max_rows: int = 512,
    memo: Memo | None = None,
    counts: CacheCounts | None = None,
    blend: Blend | None = None,
) -> list[Completion]:
    """Sample one completion for each prompt.

    Args:
        model: A causal language model.
        prompts: Token ids, no prompt empty.
        uniforms: One array of at least ``max_new_tokens`` numbers for each prompt.
        sampling: Temperature, top-p, length limit.
        stop_ids: Tokens that end a completion; the one sampled is part of it.
        max_rows: Completions that are sampled together.
        memo: Distributions known from earlier calls with the same weights; new ones are added.
        counts: Counter of prompt tokens.
        blend: Second network to mix in.
    """
    memo = Memo(0) if memo is None else memo  # an empty memo is falsy
    memo.prepare(model, sampling.temperature)
    if blend is not None:
        blend.memo.prepare(blend.network, sampling.temperature)
    order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), tuple(prompts[i])))
    results: dict[int, Completion] = {}
    for start in range(0, len(order), max_rows):
        chunk = order[start : start + max_rows]
        rows = [_Row(tuple(prompts[i]), uniforms[i]) for i in chunk]
        if counts is not None:
            _count(counts, [row.prompt for row in rows], memo)
        with evaluating(model):
            _sample(model, rows, sampling, stop_ids, memo, blend)
        found = [Completion(row.ids, tuple(row.logprobs), tuple(row.entropies)) for row in rows]
        results.update(zip(chunk, found, strict=True))
    return [results[i] for i in range(len(prompts))]


def _count(counts: CacheCounts, prompts: Sequence[tuple[int, ...]], memo: Memo) -> None:
    """Count the tokens of distinct prompts that are not in the memo, and all others."""
    prefilled = sum(len(prompt) for prompt in set(prompts) if memo.get(prompt) is None)
    counts.prefilled += prefilled
    counts.reused += sum(map(len, prompts)) - prefilled


class _Row:
    """One unfinished completion."""

    __slots__ = ("draws", "entropies", "ids", "logprobs", "prompt")

    def __init__(self, prompt: tuple[int, ...], draws: NDArray[np.float64]) -> None:
        self.prompt = prompt
        self.draws = draws
        self.ids: tuple[int, ...] = ()
        self.logprobs: list[float] = []
        self.entropies: list[float] = []


@torch.inference_mode()
def _sample(
    model: PreTrainedModel,
    rows: Sequence[_Row],
    sampling: Sampling,
    stop_ids: frozenset[int],
    memo: Memo,
    blend: Blend | None,
) -> None:
    blocks: list[_Block] = []
    others: list[_Block] = []
    running = list(rows)
    for position in range(sampling.max_new_tokens):
        prefixes = [row.prompt + row.ids for row in running]
        blocks, known = _distributions(model, prefixes, blocks, sampling.temperature, memo)
        distribution = torch.stack([known[prefix] for prefix in prefixes])
        if blend is not None:
            with blend.ready(), evaluating(blend.network):
                others, theirs = _distributions(blend.network, prefixes, others, sampling.temperature, blend.memo)
            second = torch.stack([theirs[prefix] for prefix in prefixes])
            distribution = torch.lerp(distribution, second, blend.weight).log_softmax(-1)
        draws = torch.tensor([row.draws[position] for row in running], dtype=torch.float64, device=distribution.device)
        tokens = choose(distribution, draws, sampling)
        noted = [tokens, distribution.gather(-1, tokens[:, None]).squeeze(-1)]
        if sampling.entropies:
            noted.append(entropy_share(distribution))
        found = torch.stack([each.double() for each in noted], -1).tolist()  # the only wait of a step
        for row, (token, logprob, *entropy) in zip(running, found, strict=True):
            row.ids += (int(token),)
            row.logprobs.append(logprob)
            row.entropies.extend(entropy)
        running = [row for row in running if row.ids[-1] not in stop_ids]
        if not running:
            break


def _distributions(
    model: PreTrainedModel,
    prefixes: Sequence[tuple[int, ...]],
    blocks: Sequence[_Block],
    temperature: float,
    memo: Memo,
) -> tuple[list[_Block], dict[tuple[int, ...], Tensor]]:
    """Return log-probabilities for every prefix, computing those that are not in the memo.

    A prefix whose beginning is in the cache of one of ``blocks`` continues from there; the others start from scratch.
    """
    known = {}
    missing = []
    for prefix in dict.fromkeys(prefixes):
        row = memo.get(prefix)
        if row is None:
            missing.append(prefix)
        else:
            known[prefix] = row
    fresh = missing
    advanced = []
    for block in blocks:
        mine = [prefix for prefix in fresh if prefix[:-1] in block.index]
        fresh = [prefix for prefix in fresh if prefix[:-1] not in block.index]
        if mine:
            block.extend(mine)
            advanced.append(block)
    if fresh:
        advanced.append(_Block(model, fresh))
    for block in advanced:
        logprobs = sampling_logprobs(block.logits, temperature)
        known.update(zip(block.index, logprobs, strict=True))
        memo.add(block.index, logprobs)
    return advanced, known


class _Block:
    """The network's cache for some distinct prefixes, and the logits of each one's next token.

    Args:
        model: A causal language model.
        prefixes: Token ids; padded on the left to one length.
    """

    def __init__(self, model: PreTrainedModel, prefixes: Sequence[tuple[int, ...]]) -> None:
        self.model = model
        self.index = {prefix: row for row, prefix in enumerate(prefixes)}
        longest = max(map(len, prefixes))
        device = model.device
        ids = torch.tensor([(0,) * (longest - len(p)) + p for p in prefixes], device=device)
        self._sizes = list(map(len, prefixes))
        self.lengths = torch.tensor(self._sizes, device=device)
        self.mask = (torch.arange(longest, device=device)[None, :] >= longest - self.lengths[:, None]).long()
        self.cache = DynamicCache(config=model.config)
        self.logits = self._forward(ids, (self.mask.cumsum(-1) - 1).clamp(min=0))

    def extend(self, prefixes: Sequence[tuple[int, ...]]) -> None:
        """Extend the cache to prefixes that are one token longer."""
        device = self.model.device
        rows = [self.index[prefix[:-1]] for prefix in prefixes]
        if rows != list(range(len(self.index))):
            parents = torch.tensor(rows, device=device)
            self.cache.batch_select_indices(parents)
            self.mask, self.lengths = self.mask[parents], self.lengths[parents]
            self._sizes = [self._sizes[row] for row in rows]
        self.index = {prefix: row for row, prefix in enumerate(prefixes)}
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=-1)
        self._sizes = [size + 1 for size in self._sizes]
        tokens = torch.tensor([[prefix[-1]] for prefix in prefixes], device=device)
        self.logits = self._forward(tokens, self.lengths[:, None])
        self.lengths = self.lengths + 1

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        padded = min(self._sizes) < self.mask.shape[1]
        return last_logits(
            self.model,
            self.cache,
            input_ids=ids,
            attention_mask=self.mask if padded else None,
            position_ids=positions,
        )
