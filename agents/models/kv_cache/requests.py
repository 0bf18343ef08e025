"""One completion on its way, and what a rollout's prompts cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from turngym.agents.models.completion import Completion
from turngym.agents.models.kv_cache.drafting import TRUST
from turngym.agents.sampling import Sampling


@dataclass
class CacheCounts:
    """Counts of prompt tokens by origin.

    Args:
        prefilled: Tokens of prompts that went through the network.
        reused: Tokens of prompts whose keys, or whose next distribution, were known.
        evictions: Sequences that had to make room in the cache.
        forks: Prompts that got a copy of another sequence's beginning.
        drafted: Tokens of completions that were drafted, see :func:`~turngym.agents.models.kv_cache.drafting.draft`.
        accepted: Those of them that were sampled.
    """

    prefilled: int = 0
    reused: int = 0
    evictions: int = 0
    forks: int = 0
    drafted: int = 0
    accepted: int = 0

    def __add__(self, other: CacheCounts) -> CacheCounts:
        """Return the sum."""
        return CacheCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: CacheCounts) -> CacheCounts:
        """Return the difference."""
        return CacheCounts(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


class Running:
    """An unfinished completion.

    Args:
        number: Its place among the prompts.
        prompt: Token ids.
        draws: One random number for each token that may be sampled.
        sampling: Temperature, top-p, length limit.
        stop_ids: Tokens that end it; the one sampled is part of it.
    """

    __slots__ = ("draws", "entropies", "ids", "logprobs", "number", "prompt", "row", "sampling", "stop_ids", "trust")

    def __init__(
        self,
        number: int,
        prompt: Sequence[int],
        draws: NDArray[np.float64],
        sampling: Sampling,
        stop_ids: frozenset[int],
    ) -> None:
        self.number = number
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.draws = draws
        self.sampling = sampling
        self.stop_ids = stop_ids
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.entropies: list[float] = []
        self.row = -1
        self.trust = TRUST
        """Drafted tokens that are likely to be accepted: an average of the last drafts."""

    def tokens(self) -> NDArray[np.int64]:
        """Return prompt and completion so far."""
        return np.concatenate([self.prompt, np.asarray(self.ids, dtype=np.int64)]) if self.ids else self.prompt

    @property
    def length(self) -> int:
        """Tokens so far, prompt included."""
        return len(self.prompt) + len(self.ids)

    @property
    def is_done(self) -> bool:
        """True if its last token ends it."""
        return bool(self.ids) and (self.ids[-1] in self.stop_ids or len(self.ids) >= self.sampling.max_new_tokens)

    def restart(self) -> None:
        """Forget what was sampled."""
        self.ids, self.logprobs, self.entropies = [], [], []

    def completion(self) -> Completion:
        """Return the completion."""
        return Completion(tuple(self.ids), tuple(self.logprobs), tuple(self.entropies))
