"""Metrics of the key-value cache of an iteration's rollouts."""

from __future__ import annotations

from dataclasses import replace

from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.kv_cache import CacheCounts
from turngym.agents.models.sampler import Sampler


class CacheMeter:
    """Adds up what agents count about their caches, from one call of ``metrics`` to the next."""

    def __init__(self) -> None:
        self._counts = CacheCounts()
        self._last: tuple[Sampler | None, CacheCounts] = None, CacheCounts()

    def note(self, agent: ModelAgent) -> None:
        """Add what an agent has counted since it was noted last; other backends count nothing."""
        sampler = agent.generate
        if isinstance(sampler, Sampler):
            before = self._last[1] if self._last[0] is sampler else CacheCounts()
            self._last = sampler, replace(sampler.counts)
            self.add(self._last[1] - before)

    def add(self, counts: CacheCounts) -> None:
        """Add what was counted elsewhere."""
        self._counts += counts

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        found, self._counts = self._counts, CacheCounts()
        return {
            "rollout/prefilled_tokens": float(found.prefilled),
            "rollout/reused_tokens": float(found.reused),
            "rollout/cache_evictions": float(found.evictions),
            "rollout/cache_forks": float(found.forks),
        }
