r"""A search server for many trainers: ``POST /retrieve`` as Search-R1's, ``GET /health`` with the corpus' version.

{"queries": ["who wrote it"], "topk": 3, "return_scores": true}
-> {"result": [[{"document": {"id": "d7", "contents": "title\ntext"}, "score": 3.1}, ...]]}
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngym.envs.search.documents import Hit
from turngym.envs.search.retriever import Retriever
from turngym.errors import ConfigError
from turngym.web.access import LOOPBACK, Denial, denial

LARGEST_REQUEST = 4 * 2**20
MOST_QUERIES = 1024
MOST_PASSAGES = 100
IDLE_SECONDS = 300.0
"""How long a connection may wait for its next request."""
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BadRequest(ValueError):
    """A request that cannot be answered; the text says why."""


class SearchServer(ThreadingHTTPServer):
    """Answers searches, a thread for each connection.

    Without a token only requests to the loopback are answered, and none that a web page of another origin sends.

    Args:
        retriever: What searches.
        host: Address to listen on; anything but the loopback needs a token.
        port: Port to listen on; 0 for any that is free.
        token: What clients send as ``Authorization: Bearer TOKEN``; empty for none.
        max_connections: Connections, and so threads, at once; others are answered with status 503.
        request_seconds: How long a request may take to arrive, and its answer to leave.

    Raises:
        ConfigError: The address can be reached from outside and there is no token.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(
        self,
        retriever: Retriever,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        max_connections: int = 1024,
        request_seconds: float = 30.0,
    ) -> None:
        if host not in LOOPBACK and not token:
            raise ConfigError(f"{host} can be reached from other machines: pass a token, or listen on 127.0.0.1.")
        if max_connections < 1 or not 0 < request_seconds < float("inf"):
            raise ConfigError(
                f"a search server needs at least 1 connection and a positive time for a request, got "
                f"{max_connections!r} and {request_seconds!r}."
            )
        self.retriever, self.token, self.request_seconds = retriever, token, request_seconds
        self._places = threading.BoundedSemaphore(max_connections)
        self.version = retriever.version
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or reject it at the connection limit."""
        if not self._places.acquire(blocking=False):
            request.settimeout(1.0)
            with contextlib.suppress(OSError):
                request.sendall(_FULL)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection; its place is free again at its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have closed their connection or take too long; report anything else."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

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


class _Until(io.RawIOBase):
    """Reads from a socket until a deadline, even if a client sends byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.end = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 2**16  # head and body leave together

    def setup(self) -> None:
        """Read through a limit of time."""
        super().setup()
        self.rfile.close()
        self._until = _Until(self.connection)
        self.rfile = self._reader = io.BufferedReader(self._until)

    def handle_one_request(self) -> None:
        """Wait for a request, which then has to arrive in time."""
        self._until.end = time.monotonic() + IDLE_SECONDS
        try:
            self._reader.peek(1)
        except OSError:
            self.close_connection = True
            return
        self._until.end = time.monotonic() + self.server.request_seconds
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer ``/health``."""
        if self.path != "/health":
            return self._send(404, {"error": "there are POST /retrieve and GET /health"})
        return self._send(200, {"status": "ok", "version": self.server.version})

    def do_POST(self) -> None:
        """Answer ``/retrieve``."""
        if found := self._denial():
            self.close_connection = True  # its body is not read
            return self._send(found.status, {"error": found.detail})
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            return self._send(413, {"error": f"the body needs a Content-Length of at most {LARGEST_REQUEST}"})
        body = self.rfile.read(int(length))
        if self.path != "/retrieve":
            return self._send(404, {"error": "there are POST /retrieve and GET /health"})
        try:
            return self._send(200, self.server.answer(body))
        except BadRequest as error:
            return self._send(400, {"error": str(error)})

    def _denial(self) -> Denial | None:
        headers = [self.headers.get(name, "") for name in ("Host", "Origin", "Authorization")]
        return denial(self.server.token, *headers)

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.connection.settimeout(self.server.request_seconds)
        self.wfile.write(body)
