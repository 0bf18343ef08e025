"""Search by meaning: passages whose vectors lie nearest to that of the query, all of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.embedding.encoder import Encoder, Vectors, corpus_vectors
from turngym.envs.search.retriever import MOST_WORDS, RETRIEVERS, LocalRetriever

_DIGITS = 5
"""Scores are rounded: what else is in a batch changes the last digits of a vector, and must not change the order."""


@RETRIEVERS.register("dense")
class DenseRetriever(LocalRetriever):
    """The cosine of sentence vectors (MiniLM, or a model: ``dense:FOLDER``)."""

    argument: ClassVar[str] = "a folder of a sentence-embedding model"

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        self._encoder = Encoder(argument)
        self._vectors = corpus_vectors(self.documents, self._encoder)

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        words = [" ".join(query.split()[:MOST_WORDS]) for query in queries]
        asked = [query for query in words if query]
        vectors = iter(self._encoder.encode(asked))
        return [self._nearest(next(vectors), top_k) if query else [] for query in words]

    def _nearest(self, vector: Vectors, top_k: int) -> list[Hit]:
        scores = np.round(self._vectors @ vector, _DIGITS)
        count = min(top_k, len(scores))
        if count < 1:
            return []
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
        order = places[np.argsort(-scores[places], kind="stable")][:count]
        return [Hit(self.documents[int(place)], float(scores[place])) for place in order]
