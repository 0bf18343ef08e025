"""The package bm25s: sparse matrices in NumPy, no compiled code of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.retriever import RETRIEVERS, LocalRetriever, query_words
from turngym.errors import missing_extra

_WORD = re.compile(r"\w\w+")
_NO_WORD = "\N{EMPTY SET}"
"""Stands in a document without words, which the package does not take."""


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    """Return what takes endings off, if the package PyStemmer is installed, else None."""
    try:
        import Stemmer
    except ImportError:
        return None
    return Stemmer.Stemmer("english")


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case, stemmed where a stemmer is installed."""
    found = _WORD.findall(text.lower())
    stemmer = _stemmer()
    return found if stemmer is None else list(stemmer.stemWords(found))


def _numbered(documents: Sequence[Document]) -> tuple[list[list[int]], dict[str, int]]:
    """Return the words of each document as numbers, and the number of each word: a quarter of the memory of texts."""
    vocabulary: dict[str, int] = {}
    numbers = [
        [vocabulary.setdefault(word, len(vocabulary)) for word in tokens(document.contents) or [_NO_WORD]]
        for document in documents
    ]
    return numbers, vocabulary


@RETRIEVERS.register("bm25s")
class BM25SRetriever(LocalRetriever):
    """BM25 (Lucene's form, k1 1.5, b 0.75) over title and text in one field."""

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        try:
            import bm25s
        except ModuleNotFoundError:
            raise missing_extra("the search engine bm25s", "bm25s", "search") from None

        self._index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self._index.index(_numbered(self.documents), show_progress=False)

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return [self._one(query, top_k) for query in queries]

    def _one(self, query: str, top_k: int) -> list[Hit]:
        words = [word for word in tokens(" ".join(query_words(query))) if word in self._index.vocab_dict]
        if not words or top_k < 1:
            return []
        scores = np.asarray(self._index.get_scores(words))
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [Hit(self.documents[int(place)], float(scores[place])) for place in order if scores[place] > 0]
