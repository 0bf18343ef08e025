"""Search indexes of generated worlds, made once in a process."""

from __future__ import annotations

from functools import lru_cache

from turngym.envs.search.retriever import LocalRetriever, make_retriever
from turngym.envs.search.world import make_world


@lru_cache(maxsize=8)
def world_retriever(size: int, seed: int, engine: str) -> LocalRetriever:
    """Return what searches the documents of a world."""
    return make_retriever(make_world(size, seed).documents, engine)
