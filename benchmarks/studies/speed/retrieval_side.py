"""One search engine in a process of its own, for retrieval.py: it indexes a corpus and searches as it is told."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sides import Results, serve

from turngym.envs.search.documents import Document
from turngym.envs.search.retriever import make_retriever

Search = Callable[[Sequence[str], int], list[list[int]]]
"""Queries, number of passages -> places of the passages found for each query."""
_WORD = re.compile(r"\w+")


def ours(engine: str) -> Callable[[Sequence[Document]], Search]:
    """Return what indexes with an engine of turngym."""

    def index(documents: Sequence[Document]) -> Search:
        made = make_retriever(documents, engine)
        places = {id(document): place for place, document in enumerate(made.documents)}
        return lambda queries, k: [[places[id(hit.document)] for hit in hits] for hits in made.search(queries, k)]

    return index


def rank_bm25(documents: Sequence[Document]) -> Search:
    """Index with the package rank-bm25, words in lower case."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    made = BM25Okapi([_WORD.findall(document.contents.lower()) for document in documents])

    def one(query: str, k: int) -> list[int]:
        scores = made.get_scores(_WORD.findall(query.lower()))
        best = np.argpartition(-scores, min(k, len(scores) - 1))[:k]
        return [int(place) for place in best[np.argsort(-scores[best], kind="stable")]]

    return lambda queries, k: [one(query, k) for query in queries]


def plain_bm25s(documents: Sequence[Document]) -> Search:
    """Index with the package bm25s as its own documentation shows: its tokens, its English stop words."""
    import bm25s

    made = bm25s.BM25()
    made.index(bm25s.tokenize([document.contents for document in documents], show_progress=False), show_progress=False)

    def search(queries: Sequence[str], k: int) -> list[list[int]]:
        words = bm25s.tokenize(list(queries), show_progress=False)
        found, _ = made.retrieve(words, k=k, show_progress=False)
        return [[int(place) for place in row] for row in found]

    return search


ENGINES: dict[str, Callable[[Sequence[Document]], Search]] = {
    **{engine: ours(engine) for engine in ("tantivy", "bm25s", "fts5", "dense", "hybrid")},
    "rank-bm25": rank_bm25,
    "bm25s plain": plain_bm25s,
}


def memory_mib() -> float:
    """Return the resident memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Side:
    """What answers the commands."""

    def __init__(self) -> None:
        self._documents: tuple[Document, ...] = ()
        self._search: Search | None = None

    def answer(self, command: Results) -> Results:
        """Answer one command."""
        if command["do"] == "index":
            return self._index(command["engine"], command["documents"])
        assert self._search is not None
        if command["do"] == "recall":
            found = self._search(command["queries"], command["top_k"])
            return {"ids": [[self._documents[place].id for place in row] for row in found]}
        return self._speed(command["queries"], command["batch"], command["seconds"])

    def _index(self, engine: str, path: str) -> Results:
        from turngym.envs.search.documents import read_documents

        self._documents = read_documents(Path(path))
        before, start = memory_mib(), time.perf_counter()
        self._search = ENGINES[engine](self._documents)
        return {"seconds": time.perf_counter() - start, "memory_mib": memory_mib() - before}

    def _speed(self, queries: Sequence[str], batch: int, seconds: float) -> Results:
        """Search for some seconds, over the queries again and again."""
        assert self._search is not None
        done, place, start = 0, 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            chosen = [queries[(place + number) % len(queries)] for number in range(batch)]
            self._search(chosen, 3)
            done, place = done + batch, place + batch
        return {"queries_per_second": done / passed if done else 0.0}


if __name__ == "__main__":
    side: Any = Side()
    serve(side.answer)
