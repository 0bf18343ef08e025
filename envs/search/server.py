r"""A search server for many trainers: ``POST /retrieve`` as Search-R1's, ``GET /health`` with the corpus' version.

{"queries": ["who wrote it"], "topk": 3, "return_scores": true}
-> {"result": [[{"document": {"id": "d7", "contents": "title\ntext"}, "score": 3.1}, ...]]}
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from turngym.envs.search.documents import Hit
from turngym.envs.search.retriever import Retriever
from turngym.web.json_server import JsonHandler, JsonServer

LARGEST_REQUEST = 4 * 2**20
_MOST_QUERIES = 1024
_MOST_PASSAGES = 100
_MOST_IN_ALL = 16384
"""Passages of one answer; while it is written, nothing else is answered."""


class BadRequest(ValueError):
    """A request that cannot be answered; the text says why."""


class SearchServer(JsonServer):
    """Answers searches, a thread for each connection.

    Without a token only requests to the loopback are answered, and none that a web page of another origin sends.

    Args:
        retriever: Search engine.
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as ``Authorization: Bearer TOKEN``; empty for none.
        max_connections: Connections, and so threads, at once; others are answered with status 503.
        request_seconds: Timeout for receiving a request and sending its response.

    Raises:
        ConfigError: The address can be reached from outside and there is no token.
    """

    def __init__(
        self,
        retriever: Retriever,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        max_connections: int = 1024,
        request_seconds: float = 30.0,
    ) -> None:
        self.retriever, self.version = retriever, retriever.version
        self._turns = threading.Semaphore(max(4, os.cpu_count() or 1))
        super().__init__(_Handler, "a search server", host, port, token, max_connections, request_seconds)

    def answer(self, body: bytes) -> dict[str, Any]:
        """Return the answer to the body of a request.

        Raises:
            BadRequest: The body is not a search.
        """
        with self._turns:  # more searches at once would delay all other answers
            queries, top_k, has_scores = read_request(body)
            found = self.retriever.search(queries, top_k)
            return {"result": [[_as_json(hit, has_scores) for hit in hits] for hits in found]}


def read_request(body: bytes) -> tuple[list[str], int, bool]:
    """Return queries, number of passages, and whether scores are wanted.

    Raises:
        BadRequest: The body is not a search.

    >>> read_request(b'{"queries": ["red wine"]}')
    (['red wine'], 3, False)
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error
    queries = content.get("queries") if isinstance(content, dict) else None
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise BadRequest('the body needs "queries", a list of texts')
    if len(queries) > _MOST_QUERIES:
        raise BadRequest(f"at most {_MOST_QUERIES} queries a request, got {len(queries)}")
    top_k = content.get("topk")
    top_k = 3 if top_k is None else top_k
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= _MOST_PASSAGES:
        raise BadRequest(f'"topk" is a whole number from 1 to {_MOST_PASSAGES}, got {top_k!r}')
    if len(queries) * top_k > _MOST_IN_ALL:
        raise BadRequest(f'at most {_MOST_IN_ALL} passages a request, got {len(queries)} queries with "topk" {top_k}')
    return queries, top_k, content.get("return_scores") is True


def _as_json(hit: Hit, has_score: bool) -> dict[str, Any]:
    document = {"id": hit.document.id, "contents": hit.document.contents}
    return {"document": document, "score": hit.score} if has_score else document


class _Handler(JsonHandler):
    server: SearchServer

    def do_GET(self) -> None:
        """Answer ``/health``."""
        if self.path != "/health":
            return self.send_json(404, {"error": "there are POST /retrieve and GET /health"})
        return self.send_json(200, {"status": "ok", "version": self.server.version})

    def do_POST(self) -> None:
        """Answer ``/retrieve``."""
        if found := self.denial():
            self.close_connection = True  # its body is not read
            return self.send_json(found.status, {"error": found.detail})
        body = self.body(LARGEST_REQUEST)
        if body is None:
            return self.send_json(413, {"error": f"the body needs a Content-Length of at most {LARGEST_REQUEST}"})
        if self.path != "/retrieve":
            return self.send_json(404, {"error": "there are POST /retrieve and GET /health"})
        try:
            return self.send_json(200, self.server.answer(body))
        except BadRequest as error:
            return self.send_json(400, {"error": str(error)})
