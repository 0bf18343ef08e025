"""Qdrant, a vector database: for corpora that do not fit on one machine."""

from __future__ import annotations

import importlib
import itertools
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from turngym.envs.search.documents import ContentHash, Document, Hit, content_hash
from turngym.envs.search.embedding.encoder import Encoder
from turngym.envs.search.retriever import MOST_WORDS, RETRIEVERS, LocalRetriever, Retriever
from turngym.envs.search.retrying import SearchUnavailable, tried
from turngym.errors import ConfigError, missing_extra

MEMORY = ":memory:"
"""An address in this process: the client's own search, for trying things out."""
KEY_VARIABLE = "QDRANT_API_KEY"
_BATCH = 256
_DIGITS = 5
_SPARE = 8
_COLLECTION = "turngym"


class QdrantRetriever(Retriever):
    """Searches a collection of a Qdrant server by meaning.

    The key of a guarded server is read from ``QDRANT_API_KEY``. A server that does not answer is retried a few times;
    if it stays unavailable, the search raises, so that the episode counts as faulted.

    Args:
        address: ``http://HOST:6333/COLLECTION``, with ``?model=FOLDER`` for another model than MiniLM; or ``:memory:``.
        timeout: Seconds that one request may take.
        retries: Retries of a failed request.

    Raises:
        ConfigError: The address is none, or there is no such model.
        MissingExtra: A package or the model is missing.
    """

    def __init__(self, address: str, timeout: float = 30.0, retries: int = 3) -> None:
        try:
            self._api: Any = importlib.import_module("qdrant_client")
            self._errors: Any = importlib.import_module("qdrant_client.http.exceptions")
        except ModuleNotFoundError:
            raise missing_extra("searching in Qdrant", "qdrant-client", "qdrant") from None
        server, self.collection, model = read_address(address)
        self._encoder = Encoder(model)
        self._lock = threading.Lock() if server == MEMORY else None  # the client's own search is not safe
        given = {"location": MEMORY} if server == MEMORY else {"url": server, "api_key": os.environ.get(KEY_VARIABLE)}
        self._client: Any = self._api.QdrantClient(**given, timeout=max(1, round(timeout)), check_compatibility=False)
        self._retries, self.url = retries, address

    @property
    def version(self) -> str:
        """Name of the corpus by its content, as it was when the collection was filled; empty for a foreign one."""
        return str(self._notes().get("version", ""))

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query.

        Raises:
            SearchUnavailable: The server gave no usable answer.
        """
        words = [" ".join(query.split()[:MOST_WORDS]) for query in queries]
        vectors = self._encoder.encode([query for query in words if query])
        if not len(vectors) or top_k < 1:
            return [[] for _ in queries]
        requests = [
            self._api.models.QueryRequest(query=vector.tolist(), limit=top_k + _SPARE, with_payload=True)
            for vector in vectors
        ]
        found = iter(self._call("query_batch_points", self.collection, requests))
        return [self._hits(next(found).points, top_k) if query else [] for query in words]

    def _hits(self, points: Sequence[Any], top_k: int) -> list[Hit]:
        order = sorted((-round(point.score, _DIGITS), point.id, place) for place, point in enumerate(points))
        try:
            found = [(points[place].payload, -score) for score, _, place in order[:top_k]]
            return [Hit(Document(str(one["id"]), str(one["title"]), str(one["text"])), score) for one, score in found]
        except (KeyError, TypeError) as error:
            raise SearchUnavailable(
                f"{self.url} has points without id, title and text ({error!r}): fill the collection with turngym."
            ) from error

    def fill(self, documents: Iterable[Document]) -> None:
        """Write a corpus into the collection, piece by piece; one that was broken off is written again.

        Raises:
            ConfigError: The collection is complete already: nothing that is there is replaced.
            SearchUnavailable: The server gave no usable answer.
        """
        if self.version:
            raise ConfigError(f"the collection {self.collection!r} of {self.url} is filled: name another one.")
        if not self._call("collection_exists", self.collection):
            models = self._api.models
            vectors = models.VectorParams(size=self._encoder.width, distance=models.Distance.COSINE)
            self._call("create_collection", self.collection, vectors)
        digest, count = ContentHash(), 0
        for batch in _batches(documents):
            for document in batch:
                digest.add(document)
            self._write(count, batch)
            count += len(batch)
        notes = {"version": digest.name(), "model": self._encoder.version()}  # written last: it is complete
        self._call("update_collection", self.collection, metadata=notes)

    def _write(self, start: int, documents: Sequence[Document]) -> None:
        vectors = self._encoder.encode([document.contents for document in documents]).tolist()
        places = list(range(start, start + len(documents)))
        payloads = [{"id": each.id, "title": each.title, "text": each.text} for each in documents]
        points = self._api.models.Batch(ids=places, vectors=vectors, payloads=payloads)
        self._call("upsert", self.collection, points, wait=True)

    def _notes(self) -> Mapping[str, Any]:
        """Return what was written down when the collection was filled; nothing if there is none."""
        if not self._call("collection_exists", self.collection):
            return {}
        return self._call("get_collection", self.collection).config.metadata or {}

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        def once() -> Any:
            try:
                if self._lock is None:
                    return getattr(self._client, name)(*arguments, **options)
                with self._lock:
                    return getattr(self._client, name)(*arguments, **options)
            except self._errors.UnexpectedResponse as error:
                if 400 <= (error.status_code or 500) < 500 and error.status_code not in (408, 429):
                    raise SearchUnavailable(
                        f"{self.url} refused with {error.status_code}: {str(error)[:200]}"
                    ) from error
                raise

        return tried(once, self._retries, self.url, (self._errors.ApiException, OSError, ValueError))


@RETRIEVERS.register("qdrant")
class QdrantEngine(LocalRetriever):
    """A corpus of this process, searched in Qdrant, and written there before if the collection is empty."""

    argument: ClassVar[str] = "the address of a Qdrant server"

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        super().__init__(documents, argument)
        self._remote = QdrantRetriever(argument or MEMORY)
        there = self._remote.version
        if there and there != self.version:
            raise ConfigError(
                f"the collection {self._remote.collection!r} of {argument} holds another corpus ({there}, wanted "
                f"{content_hash(self.documents)}): name another one."
            )
        if not there:
            self._remote.fill(self.documents)

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return self._remote.search(queries, top_k)


def read_address(address: str) -> tuple[str, str, str]:
    """Return server, collection and folder of the model.

    Raises:
        ConfigError: It is not an address of this form.

    >>> read_address("http://localhost:6333/wiki?model=/models/e5")
    ('http://localhost:6333', 'wiki', '/models/e5')
    """
    parts = urlsplit(address)
    options = parse_qs(parts.query, keep_blank_values=True)
    model = options.pop("model", [""])[0]
    if parts.path == MEMORY and not options:
        return MEMORY, _COLLECTION, model
    collection = parts.path.strip("/")
    if parts.scheme not in ("http", "https") or not parts.hostname or not collection or "/" in collection or options:
        raise ConfigError(f"a collection of Qdrant is named like http://127.0.0.1:6333/wiki, got {address!r}.")
    return f"{parts.scheme}://{parts.netloc}", collection, model


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    rest = iter(documents)
    while batch := list(itertools.islice(rest, _BATCH)):
        yield batch
