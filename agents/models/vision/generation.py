"""Token generation for prompts with pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from turngym.agents.models.forward_pass import last_logits
from turngym.agents.models.generate import Completion, choose, entropy_share, sampling_logprobs
from turngym.agents.models.vision.pictures import PictureInputs
from turngym.agents.sampling import Sampling

_MOST_ROWS = 64


def padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids and mask of some sequences, padded on the left, ``[row, token]`` each."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    return ids, (torch.arange(longest, device=device)[None] >= longest - lengths[:, None]).long()


def generate_with_pictures(
    network: PreTrainedModel,
    takes: PictureInputs,
    prompts: Sequence[Sequence[int]],
    pictures: Sequence[Sequence[bytes]],
    uniforms: Sequence[NDArray[np.float64]],
    sampling: Sampling,
    stop_ids: frozenset[int],
) -> list[Completion]:
    """Sample one completion for each prompt.

    Args:
        network: A model that takes pictures.
        takes: Image handling.
        prompts: Token ids with all placeholders.
        pictures: PNG files of each prompt, in the order of their placeholders.
        uniforms: One array of at least ``max_new_tokens`` numbers for each prompt.
        sampling: Temperature, top-p, length limit.
        stop_ids: Tokens that end a completion; the one sampled is part of it.
    """
    found: dict[int, Completion] = {}
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for start in range(0, len(order), _MOST_ROWS):
        chunk = order[start : start + _MOST_ROWS]
        batch = _Batch(network, takes, [prompts[i] for i in chunk], [pictures[i] for i in chunk])
        completions = batch.complete([uniforms[i] for i in chunk], sampling, stop_ids)
        found.update(zip(chunk, completions, strict=True))
    return [found[i] for i in range(len(prompts))]


class _Batch:
    """Prompts that are completed together."""

    def __init__(
        self,
        network: PreTrainedModel,
        takes: PictureInputs,
        prompts: Sequence[Sequence[int]],
        pictures: Sequence[Sequence[bytes]],
    ) -> None:
        self.network = network
        self.takes = takes
        self.ids, self.mask = padded(prompts, network.device)
        self.inputs = takes.inputs(pictures, self.ids)
        self.positions = takes.positions(network, self.ids, self.mask, self.inputs)
        self.cache = DynamicCache(config=network.config.get_text_config())

    @torch.inference_mode()
    def complete(
        self, uniforms: Sequence[NDArray[np.float64]], sampling: Sampling, stop_ids: frozenset[int]
    ) -> list[Completion]:
        """Sample token by token until every completion has ended."""
        rows = range(len(self.ids))
        ids: list[list[int]] = [[] for _ in rows]
        logprobs: list[list[float]] = [[] for _ in rows]
        entropies: list[list[float]] = [[] for _ in rows]
        running = set(rows)
        logits = self._forward(self.ids, self.positions, self.inputs)
        for number in range(sampling.max_new_tokens):
            distribution = sampling_logprobs(logits, sampling.temperature)
            draws = torch.tensor([row[number] for row in uniforms], dtype=torch.float64, device=logits.device)
            tokens = choose(distribution, draws, sampling)
            chosen = distribution.gather(-1, tokens[:, None]).squeeze(-1).tolist()
            shares = entropy_share(distribution).tolist() if sampling.entropies else []
            for row in running:
                ids[row].append(int(tokens[row]))
                logprobs[row].append(chosen[row])
                entropies[row] += shares[row : row + 1]
            running = {row for row in running if ids[row][-1] not in stop_ids}
            if not running or number + 1 == sampling.max_new_tokens:
                break
            logits = self._step(torch.where(tokens == self.takes.placeholder, self.takes.neutral, tokens))
        parts = zip(ids, logprobs, entropies, strict=True)
        return [Completion(tuple(tokens), tuple(each), tuple(shares)) for tokens, each, shares in parts]

    def _step(self, tokens: Tensor) -> Tensor:
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=1)
        last = self.positions[..., -1:]
        if self.positions.ndim == 3:  # after an image, all three parts continue behind the largest of them
            last = last.amax(0, keepdim=True).expand(3, -1, -1)
        self.positions = last + 1
        return self._forward(tokens[:, None], self.positions, {})

    def _forward(self, ids: Tensor, positions: Tensor, inputs: dict[str, Tensor]) -> Tensor:
        return last_logits(
            self.network,
            self.cache,
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            **inputs,
        )
