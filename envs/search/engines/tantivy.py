"""The package tantivy: a search engine in Rust, the fastest in memory and time of those measured."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.retriever import RETRIEVERS, LocalRetriever, query_words
from turngym.errors import missing_extra

_HEAP = 128_000_000
_SPARE = 8
"""Hits fetched beyond those asked for, so that equal ones are returned in the corpus' order."""


@RETRIEVERS.register("tantivy")
class TantivyRetriever(LocalRetriever):
    """BM25 over title and text in one stemmed field, in memory."""

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        try:
            import tantivy
        except ModuleNotFoundError:
            raise missing_extra("the search engine tantivy", "tantivy", "search") from None

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("contents", stored=False, tokenizer_name="en_stem")
        builder.add_integer_field("place", stored=True, indexed=False)
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(_HEAP, 1)  # one thread: the same segments, and so the same scores, every time
        for place, document in enumerate(self.documents):
            contents = document.contents.encode("utf8", "replace").decode("utf8")
            writer.add_document(tantivy.Document(contents=contents, place=place))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return [self._one(query, top_k) for query in queries]

    def _one(self, query: str, top_k: int) -> list[Hit]:
        words = query_words(query.encode("utf8", "replace").decode("utf8"))
        if not words or top_k < 1:
            return []
        parsed = self._index.parse_query(" ".join(f'"{word}"' for word in words), ["contents"])
        found = self._searcher.search(parsed, top_k + _SPARE, count=False).hits
        places = [(-score, int(self._searcher.doc(address)["place"][0])) for score, address in found]
        return [Hit(self.documents[place], -score) for score, place in sorted(places)[:top_k]]
