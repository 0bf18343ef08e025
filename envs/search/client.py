"""Searching on a server: Search-R1's protocol, ``POST /retrieve``.

A server that does not answer is retried a few times. If it stays unavailable or sends invalid answers, the search
raises, so that the episode counts as faulted: the agent is not at fault, and must not learn from searches that found
nothing.
"""

from __future__ import annotations

import http.client
import json
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.retriever import Retriever
from turngym.envs.search.retrying import SearchUnavailable, tried
from turngym.errors import ConfigError

T = TypeVar("T")
LARGEST_ANSWER = 16 * 2**20


class SearchClient(Retriever):
    """Searches on a server; connections are kept open, as many as threads search at once, until the client is dropped.

    Args:
        url: Address of the server, such as ``http://127.0.0.1:8000``; ``/retrieve`` is added unless a path is given.
        token: Sent as ``Authorization: Bearer TOKEN`` unless empty.
        timeout: Seconds that one request may take.
        retries: Retries of a failed request.

    Raises:
        ConfigError: The address is none of a web server.
    """

    def __init__(self, url: str, token: str = "", timeout: float = 30.0, retries: int = 3) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query:
            raise ConfigError(f"a search server is named like http://127.0.0.1:8000, got {url!r}.")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = parts.path.rstrip("/") or "/retrieve"
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._timeout, self._retries = timeout, retries
        self._idle: deque[http.client.HTTPConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)
        self.url = url

    @property
    def version(self) -> str:
        """The server's version of its corpus."""
        return str(self._call("GET", "/health", None).get("version", ""))

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query.

        Raises:
            SearchUnavailable: The server gave no usable answer.
        """
        body = json.dumps({"queries": list(queries), "topk": top_k, "return_scores": True}).encode()
        answer = self._call("POST", self._path, body)
        try:
            found = [[_hit(raw) for raw in one][:top_k] for one in answer["result"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SearchUnavailable(f"{self.url} answered what is not a list of passages ({error!r}).") from error
        if len(found) != len(queries):
            raise SearchUnavailable(f"{self.url} answered {len(queries)} queries with {len(found)} lists.")
        return found

    def _call(self, method: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        passing = (OSError, http.client.HTTPException, ValueError)
        return tried(lambda: self._once(method, path, body), self._retries, self.url, passing)

    def _once(self, method: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        connection = self._connection()
        try:
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            content = answer.read(LARGEST_ANSWER + 1)
        except BaseException:
            connection.close()
            raise
        if len(content) > LARGEST_ANSWER or answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return self._read(answer.status, content)

    def _connection(self) -> http.client.HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            return kind(self._host, self._port, timeout=self._timeout)

    def _read(self, status: int, content: bytes) -> Mapping[str, Any]:
        if len(content) > LARGEST_ANSWER:
            raise ValueError(f"the answer is longer than {LARGEST_ANSWER} bytes")
        if status != 200:
            if 400 <= status < 500 and status not in (408, 429):
                raise SearchUnavailable(f"{self.url} refused with {status}: {content[:200]!r}")
            raise ValueError(f"status {status}")
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError("the answer is not a JSON object")
        return found


def connect(url: str) -> Retriever:
    """Return a client for an address: Search-R1's protocol, or Qdrant's with the prefix ``qdrant+``.

    Raises:
        ConfigError: It is not an address.
        MissingExtra: A package for it is missing.

    >>> type(connect("http://127.0.0.1:8000")).__name__
    'SearchClient'
    """
    if not url.startswith("qdrant+"):
        return SearchClient(url)
    from turngym.envs.search.engines.qdrant import QdrantRetriever  # imported lazily: its dependencies are optional

    return QdrantRetriever(url.removeprefix("qdrant+"))


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _hit(raw: Mapping[str, Any]) -> Hit:
    """Return a passage, with its score where the server gives one."""
    score = float(raw.get("score", 0.0))
    document = raw.get("document", raw)
    title, _, text = str(document["contents"]).partition("\n")
    return Hit(Document(str(document["id"]), title.strip('"'), text), score)
