"""A small HTTP server of JSON: a thread for each connection, a token, limits on connections, sizes and time."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngym.errors import ConfigError
from turngym.web.access import LOOPBACK, Denial, denial

IDLE_SECONDS = 300.0
"""How long a connection may wait for its next request."""
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class JsonServer(ThreadingHTTPServer):
    """Serves each connection in a thread.

    Without a token only requests to the loopback are answered, and none that a web page of another origin sends.

    Args:
        handler: Answers the requests of a connection.
        name: What it is, for error messages.
        host: Address to listen on; anything but the loopback needs a token.
        port: Port to listen on; 0 for any that is free.
        token: What clients send as ``Authorization: Bearer TOKEN``; empty for none.
        max_connections: Connections, and so threads, at once; others are answered with status 503.
        request_seconds: How long a request may take to arrive, and its answer to leave.

    Raises:
        ConfigError: The address can be reached from outside and there is no token, or a limit makes no sense.
    """

    daemon_threads = True
    request_queue_size = 1024

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
        self._places = threading.BoundedSemaphore(max_connections)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    @property
    def url(self) -> str:
        """Address for clients."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

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


class JsonHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection, in subclasses by ``do_GET`` and ``do_POST``."""

    server: JsonServer
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

    def denial(self) -> Denial | None:
        """Return why the request is refused; None if it is answered."""
        headers = [self.headers.get(name, "") for name in ("Host", "Origin", "Authorization")]
        return denial(self.server.token, *headers)

    def body(self, largest: int) -> bytes | None:
        """Return the body of the request; None if it has no length or is too large, and the connection is to be closed.

        Args:
            largest: Most bytes.
        """
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or len(length) > 19 or int(length) > largest:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def send_json(self, status: int, content: Mapping[str, Any]) -> None:
        """Send an answer."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.connection.settimeout(self.server.request_seconds)
        self.wfile.write(body)
