"""SQLite's full-text search: needs nothing beyond Python, and suits corpora of up to about 10,000 passages."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.retriever import RETRIEVERS, LocalRetriever, query_words
from turngym.storage.memory_database import MemoryDatabase


@RETRIEVERS.register("fts5")
class FTS5Retriever(LocalRetriever):
    """BM25 over title and text in one stemmed field, in memory."""

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        self._lock = threading.Lock()
        self._database = MemoryDatabase()
        self._database.execute("BEGIN")
        self._database.execute("CREATE VIRTUAL TABLE passage USING fts5(contents, tokenize='porter unicode61')")
        rows = ((place, _storable(document.contents)) for place, document in enumerate(self.documents))
        self._database.executemany("INSERT INTO passage(rowid, contents) VALUES (?, ?)", rows)
        self._database.execute("COMMIT")

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return [self._one(query, top_k) for query in queries]

    def _one(self, query: str, top_k: int) -> list[Hit]:
        words = query_words(_storable(query))
        if not words or top_k < 1:
            return []
        wanted = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, rank FROM passage WHERE passage MATCH ? ORDER BY rank, rowid LIMIT ?", (wanted, top_k)
            ).fetchall()
        return [Hit(self.documents[place], -rank) for place, rank in rows]


def _storable(text: str) -> str:
    """Return a text without what SQLite cannot take: half surrogate pairs and NUL."""
    return text.encode("utf8", "replace").decode("utf8").replace("\0", " ")
