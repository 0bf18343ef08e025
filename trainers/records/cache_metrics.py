"""Metrics of the key-value cache of an iteration's rollouts."""

from __future__ import annotations

from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.sampler import Sampler
from turngym.agents.models.sessions import CacheCounts


class CacheMeter:
    """Adds up what agents count about their caches, from one call of ``metrics`` to the next."""

    def __init__(self) -> None:
        self._counts = CacheCounts()

    def note(self, agent: ModelAgent) -> None:
        """Add the counts of an agent that has finished its rollout; other backends count nothing."""
        if isinstance(agent.generate, Sampler):
            self._counts += agent.generate.counts

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        found, self._counts = self._counts, CacheCounts()
        return {
            "rollout/prefilled_tokens": float(found.prefilled),
            "rollout/reused_tokens": float(found.reused),
            "rollout/cache_evictions": float(found.evictions),
            "rollout/cache_forks": float(found.forks),
        }
