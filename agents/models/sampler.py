"""The generation backend of a model in this process: kept keys and values, a memo, or neither."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from turngym.agents.models.completion import Completion
from turngym.agents.models.generate import Memo, generate
from turngym.agents.models.kv_cache.memory import bytes_per_token, can_be_kept
from turngym.agents.models.kv_cache.requests import CacheCounts
from turngym.agents.models.kv_cache.sessions import Sessions
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError

_MOST_WORDS = 1024
_MEMORY_SHARE = 4
_USUAL_MEMORY = 8 * 2**30


def memo_pays(network: PreTrainedModel) -> bool:
    """Return whether distributions of whole prompts are worth remembering instead of keys and values.

    They are at best where the same states come back and the vocabulary is so small that those of many thousand prefixes
    fit, as with the embedded model: up to 1,024 words. On 64 episodes of the quickstart a rollout with the memo takes
    1.0 times as long as one with kept keys where the policy is nearly certain, and 1.7 times where it is random; with
    append-only histories 3.6 times at 20 turns. The memo stays for these models because their runs then repeat to the
    bit, but not for prompts that are appended to.
    """
    return int(network.config.get_text_config(decoder=True).vocab_size) <= _MOST_WORDS


def automatic_budget(network: PreTrainedModel) -> int:
    """Return how many tokens' keys and values fill half of a GPU's free memory, or a quarter of the host's memory."""
    if network.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(network.device)
        unused = torch.cuda.memory_reserved(network.device) - torch.cuda.memory_allocated(network.device)
        return int((free + unused) // 2 // bytes_per_token(network))
    has_sizes = hasattr(os, "sysconf")
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if has_sizes else _USUAL_MEMORY
    return int(total // _MEMORY_SHARE // bytes_per_token(network))


class Sampler:
    """Samples completions of prompts with a model's network.

    Keys and values are kept from turn to turn (:class:`~turngym.agents.models.kv_cache.Sessions`), except for tiny
    vocabularies, where a memo of distributions pays more (:func:`memo_pays`), and for networks whose caches cannot be
    cut, such as those with sliding windows or linear attention, which compute every prompt again.

    Args:
        model: The model.
        cache_tokens: Size of the KV cache in tokens; 0 uses :func:`automatic_budget`.
        draft_tokens: Maximum number of tokens that are copied from earlier text as a draft and checked in one pass.
        appends: Whether a prompt starts with the one before it, so that a memo would compute every turn again.

    Raises:
        ConfigError: Tokens are to be drafted, and keys and values are not kept, or a GPU runs decode steps as CUDA
            graphs.
    """

    def __init__(
        self, model: LanguageModel, cache_tokens: int = 0, draft_tokens: int = 0, *, appends: bool = False
    ) -> None:
        self.model = model
        self._given = cache_tokens, draft_tokens
        self._counts = CacheCounts()
        self._memo = Memo() if memo_pays(model.network) and not appends else None
        self._sessions = None
        if self._memo is None and can_be_kept(model.network):
            budget = cache_tokens or automatic_budget(model.network)
            self._sessions = Sessions(model.network, model.stop_ids, budget, draft_tokens=draft_tokens)
        elif draft_tokens and self._memo is not None:
            raise ConfigError(
                f"draft_tokens is {draft_tokens}, and nothing is drafted for the model {model.name}: with a vocabulary "
                f"of at most {_MOST_WORDS} tokens, distributions of whole prompts are kept instead of keys and values. "
                "Leave it out, or let prompts append to one another (prompt.mode conversation)."
            )
        elif draft_tokens:
            raise ConfigError(
                f"draft_tokens is {draft_tokens}, and nothing is drafted for the model {model.name}: its layers do not "
                "keep keys and values in a way that can be cut. Leave it out."
            )

    def appending(self) -> Sampler:
        """Return a sampler with the same settings for prompts that append to one another."""
        return Sampler(self.model, *self._given, appends=True)

    @property
    def counts(self) -> CacheCounts:
        """Counts of prompt tokens so far, by origin."""
        return self._counts if self._sessions is None else self._sessions.counts

    def most_sequences(self, tokens: int) -> int:
        """Return how many sequences of so many tokens are kept at once; 0 for any number."""
        return 0 if self._sessions is None else max(self._sessions.store.most_rows(tokens), 1)

    def __call__(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt."""
        model = self.model
        if self._sessions is not None:
            return self._sessions.complete(prompts, uniforms, sampling)
        return generate(
            model.network, prompts, uniforms, sampling, model.stop_ids, memo=self._memo, counts=self._counts
        )
