"""Words and meaning together: the ranks of two engines fused, which finds more than either of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.engines.dense import DenseRetriever
from turngym.envs.search.retriever import RETRIEVERS, LocalRetriever, make_retriever

_CONSTANT = 60
"""The published constant of reciprocal rank fusion (Cormack et al. 2009)."""
_DEPTH = 100
"""Passages of each engine that are fused."""


def fuse(rankings: Sequence[Sequence[int]], constant: int = _CONSTANT) -> list[tuple[int, float]]:
    """Return places with the sum of 1 / (constant + rank) over the rankings, best first, equal ones by place.

    >>> [place for place, score in fuse([[7, 5], [5, 9]])]
    [5, 7, 9]
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] = scores.get(place, 0.0) + 1 / (constant + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@RETRIEVERS.register("hybrid")
class HybridRetriever(LocalRetriever):
    """BM25 of the best engine here and sentence vectors, fused (MiniLM, or a model: ``hybrid:FOLDER``)."""

    argument: ClassVar[str] = DenseRetriever.argument

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        self._engines = DenseRetriever(self.documents, argument), make_retriever(self.documents)
        self._places = {id(document): place for place, document in enumerate(self.documents)}

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        found = [engine.search(queries, max(_DEPTH, top_k)) for engine in self._engines]
        return [self._fused(lists, top_k) for lists in zip(*found, strict=True)]

    def _fused(self, lists: Sequence[Sequence[Hit]], top_k: int) -> list[Hit]:
        rankings = [[self._places[id(hit.document)] for hit in hits] for hits in lists]
        return [Hit(self.documents[place], score) for place, score in fuse(rankings)[: max(0, top_k)]]
