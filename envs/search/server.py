r"""A search server for many trainers: ``POST /retrieve`` as Search-R1's, ``GET /health`` with the corpus' version.

{"queries": ["who wrote it"], "topk": 3, "return_scores": true}
-> {"result": [[{"document": {"id": "d7", "contents": "title\ntext"}, "score": 3.1}, ...]]}
"""

from __future__ import annotations

import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngym.envs.search.documents import Hit
from turngym.envs.search.retriever import Retriever
from turngym.errors import ConfigError

LARGEST_REQUEST = 4 * 2**20
MOST_QUERIES = 1024
MOST_PASSAGES = 100
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class BadRequest(ValueError):
    """A request that cannot be answered; the text says why."""


class SearchServer(ThreadingHTTPServer):
    """Answers searches, a thread for each connection.

    Args:
        retriever: What searches.
        host: Address to listen on; anything but the loopback needs a token.
        port: Port to listen on; 0 for any that is free.
        token: What clients send as ``Authorization: Bearer TOKEN``; empty for none.

    Raises:
        ConfigError: The address can be reached from outside and there is no token.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, retriever: Retriever, host: str = "127.0.0.1", port: int = 0, token: str = "") -> None:
        if host not in _LOOPBACK and not token:
            raise ConfigError(f"{host} can be reached from other machines: pass a token, or listen on 127.0.0.1.")
        self.retriever, self.token = retriever, token
        self.version = retriever.version
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def answer(self, body: bytes) -> dict[str, Any]:
        """Return the answer to the body of a request.

        Raises:
            BadRequest: The body is no search.
        """
        queries, top_k, has_scores = read_request(body)
        found = self.retriever.search(queries, top_k)
        return {"result": [[_as_json(hit, has_scores) for hit in hits] for hits in found]}


def read_request(body: bytes) -> tuple[list[str], int, bool]:
    """Return queries, number of passages, and whether scores are wanted.

    Raises:
        BadRequest: The body is no search.

    >>> read_request(b'{"queries": ["red wine"]}')
    (['red wine'], 3, False)
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is no JSON") from error
    queries = content.get("queries") if isinstance(content, dict) else None
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise BadRequest('the body needs "queries", a list of texts')
    if len(queries) > MOST_QUERIES:
        raise BadRequest(f"at most {MOST_QUERIES} queries a request, got {len(queries)}")
    top_k = content.get("topk")
    top_k = 3 if top_k is None else top_k
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MOST_PASSAGES:
        raise BadRequest(f'"topk" is a whole number from 1 to {MOST_PASSAGES}, got {top_k!r}')
    return queries, top_k, content.get("return_scores") is True


def _as_json(hit: Hit, has_score: bool) -> dict[str, Any]:
    document = {"id": hit.document.id, "contents": hit.document.contents}
    return {"document": document, "score": hit.score} if has_score else document


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 2**16  # head and body leave together
    timeout = 300

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer ``/health``."""
        if self.path != "/health":
            return self._send(404, {"error": "there are POST /retrieve and GET /health"})
        return self._send(200, {"status": "ok", "version": self.server.version})

    def do_POST(self) -> None:
        """Answer ``/retrieve``."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            return self._send(413, {"error": f"the body needs a Content-Length of at most {LARGEST_REQUEST}"})
        body = self.rfile.read(int(length))
        if self.path != "/retrieve":
            return self._send(404, {"error": "there are POST /retrieve and GET /health"})
        if not self._is_allowed():
            return self._send(401, {"error": "send Authorization: Bearer TOKEN"})
        try:
            return self._send(200, self.server.answer(body))
        except BadRequest as error:
            return self._send(400, {"error": str(error)})

    def _is_allowed(self) -> bool:
        wanted = f"Bearer {self.server.token}".encode()
        given = self.headers.get("Authorization", "").encode("utf8", "replace")
        return not self.server.token or hmac.compare_digest(given, wanted)

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
