"""A small HTTP server of JSON: a thread for each connection, a token, limits on connections, sizes and time.

No client can hold a connection that others need: at the limit, a new one replaces the one that has waited longest for a
request to arrive or for its answer to be read. Only those whose request is being answered keep theirs. The same is
true of the memory of large bodies and answers.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngym.errors import ConfigError
from turngym.web.access import LOOPBACK, Denial, denial
from turngym.web.connections import allowed_connections
from turngym.web.request_reader import PIECE, RequestReader, UntilDeadline

_IDLE_SECONDS = 300.0
"""Idle timeout of a connection."""
_ACCEPT_SECONDS = 0.05
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class JsonServer(ThreadingHTTPServer):
    """Serves each connection in a thread.

    Without a token only requests to the loopback are answered, and none that a web page of another origin sends.

    Args:
        handler: Answers the requests of a connection.
        name: Name for error messages.
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as ``Authorization: Bearer TOKEN``; empty for none.
        max_connections: Connections, and so threads, at once; fewer where the system allows fewer open files. If all
            are being answered, others get status 503.
        request_seconds: Timeout for receiving a request and sending its response.

    Raises:
        ConfigError: The address can be reached from outside and there is no token, or a limit makes no sense.
    """

    daemon_threads = True
    request_queue_size = 1024
    max_bytes = 2**28
    """Bytes of large bodies and answers in memory; beyond it the connection that waits longest with one is closed."""

    def __init__(
        self,
        handler: type[JsonHandler],
        name: str,
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
                f"{name} needs at least 1 connection and a positive time for a request, got "
                f"{max_connections!r} and {request_seconds!r}."
            )
        self.token, self.request_seconds = token, request_seconds
        self._most = min(max_connections, allowed_connections(max_connections))
        self._open: dict[socket.socket, bool] = {}
        self._held: dict[socket.socket, int] = {}
        self.turn = threading.Lock()
        """Held by the thread that reads a part of a large body."""
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    @property
    def url(self) -> str:
        """Address for clients."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; without room for its file wait a moment, instead of failing again at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_ACCEPT_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or reject it if all others are being answered."""
        if not self._enter(request):
            request.settimeout(1.0)
            with contextlib.suppress(OSError):
                request.sendall(_FULL)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection; its place is free again at its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _enter(self, connection: socket.socket) -> bool:
        """Take a place, if need be that of the connection that has waited longest; False if there is none."""
        with self._lock:
            if len(self._open) >= self._most:
                longest = next((each for each, is_waiting in self._open.items() if is_waiting), None)
                if longest is None:
                    return False
                self._close(longest)
            self._open[connection] = True
            return True

    def _close(self, connection: socket.socket) -> None:
        """Close a connection and count it no more; the lock is held."""
        self._open.pop(connection, None)
        self._held.pop(connection, None)
        with contextlib.suppress(OSError):  # closed already
            connection.shutdown(socket.SHUT_RDWR)  # ends its thread

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)
            self._held.pop(connection, None)

    def hold(self, connection: socket.socket, size: int) -> None:
        """Count the bytes of a body or an answer, if need be after closing the connections that have waited longest."""
        with self._lock:
            if connection in self._open:
                self._held[connection] = size
            while sum(self._held.values()) > self.max_bytes:
                longest = next((each for each, waits in self._open.items() if waits and each in self._held), connection)
                self._close(longest)

    def mark(self, connection: socket.socket, is_waiting: bool) -> None:
        """Record whether a connection waits for its client, and so may be replaced, or is being answered."""
        with self._lock:
            if self._open.pop(connection, None) is not None:
                self._open[connection] = is_waiting

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have closed their connection or take too long; report anything else."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Together(io.BytesIO):
    """Collects an answer, which then has to leave within a limit of time."""

    def __init__(self, handler: JsonHandler) -> None:
        super().__init__()
        self._handler = handler

    def flush(self) -> None:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        if data:
            server, connection = self._handler.server, self._handler.connection
            server.mark(connection, is_waiting=True)
            server.hold(connection, self._handler.body_bytes + len(data))
            connection.settimeout(server.request_seconds)
            connection.sendall(data)


class JsonHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection, in subclasses by ``do_GET`` and ``do_POST``."""

    server: JsonServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    body_bytes = 0

    def setup(self) -> None:
        """Read and write through limits of time."""
        super().setup()
        self.rfile.close()
        self._until = UntilDeadline(self.connection, self.server.turn)
        self.rfile = self._reader = RequestReader(self._until, partial(self.server.hold, self.connection))
        self.wfile = _Together(self)

    def handle_one_request(self) -> None:
        """Wait for a request, which then has to arrive in time."""
        self.server.mark(self.connection, is_waiting=True)
        self.server.hold(self.connection, 0)
        self.body_bytes = 0
        self._until.start(_IDLE_SECONDS)
        try:
            self._reader.peek(1)
        except OSError:
            self.close_connection = True
            return
        self._until.start(self.server.request_seconds)
        self._reader.start()
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the head; False if it has been refused, as one is that others may see as two requests."""
        if not super().parse_request():
            return False
        lengths = self.headers.get_all("Content-Length", [])
        is_odd = len(lengths) > 1 or "Transfer-Encoding" in self.headers or bool(self.headers.defects)
        if is_odd or (self.command != "POST" and lengths not in ([], ["0"])):  # such a body would not be read
            self.close_connection = True
            self.send_error(400, "a request has one Content-Length, and a body with POST alone")
            return False
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def denial(self) -> Denial | None:
        """Return why the request is refused; None if it is answered."""
        headers = [self.headers.get(name, "") for name in ("Host", "Origin", "Authorization")]
        return denial(self.server.token, *headers)

    def body(self, largest: int) -> bytes | None:
        """Return the body of the request; None if it has no length or is too large, and the connection is to be closed.

        Args:
            largest: Maximum number of bytes.
        """
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or len(length) > 19 or int(length) > largest:
            self.close_connection = True
            return None
        content = bytearray()
        while piece := self.rfile.read(min(int(length) - len(content), PIECE)):
            if content:
                self.server.hold(self.connection, len(content) + len(piece))
            content += piece
        self.body_bytes = len(content)
        self.server.mark(self.connection, is_waiting=False)
        return bytes(content)

    def send_json(self, status: int, content: Mapping[str, Any]) -> None:
        """Send an answer."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
