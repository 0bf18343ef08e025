"""uvicorn with limits: connections in all and of each client, time for a request to arrive and an answer to leave."""

from __future__ import annotations

import asyncio
import errno
import importlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from turngym.errors import ConfigError, missing_extra
from turngym.web.connections import Connection, Connections, peer_of
from turngym.web.tiny_parts import TinyPace, TinyParts

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[Scope, Receive, Send], Awaitable[None]]

_logger = logging.getLogger(__name__)
_STATE = "turngym.connection"
_BACKLOG = 512  # as many are accepted in one step of the event loop, and as many errors reported if no file is left
_PIECE = 4096
"""Bytes of a connection that are read in one step of the event loop: h11 reads each chunk in them in Python."""
_LARGE_PIECE = 2**16
_BOTH_LENGTHS = {b"content-length", b"transfer-encoding"}
_AMBIGUOUS = b"a request has either a Content-Length or a Transfer-Encoding."
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SETTINGS = {
    "loop": "asyncio",  # reads once a step
    "ws": "none",
    "backlog": _BACKLOG,
    "timeout_graceful_shutdown": 5,
    "timeout_keep_alive": 75,
    "log_level": "error",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "lifespan": "on",
}


@dataclass
class ServerLimits:
    """Limits that a server sets for clients.

    Args:
        connections: The open connections.
        request_seconds: Time for a request to arrive, from its first byte, or the connection's start, to its last.
        write_seconds: Time for a client to take what waits for it.
    """

    connections: Connections = field(default_factory=Connections)
    request_seconds: float = 30.0
    write_seconds: float = 30.0


def require_asgi(feature: str) -> tuple[Any, Any]:
    """Return uvicorn and its class of connections.

    Args:
        feature: Component that needs uvicorn, for the error message.

    Raises:
        MissingExtra: uvicorn is not installed.
    """
    try:
        uvicorn = importlib.import_module("uvicorn")
        return uvicorn, importlib.import_module("uvicorn.protocols.http.h11_impl").H11Protocol  # strict, always there
    except ModuleNotFoundError as error:
        raise missing_extra(feature, str(error.name), "serve") from error


def asgi_server(app: _App, feature: str, limits: ServerLimits | None = None, **settings: Any) -> Any:
    """Return a server of uvicorn for an application; its ``run`` takes sockets that listen.

    Args:
        app: The application.
        feature: Component that needs uvicorn, for the error message.
        limits: Limits of clients.
        **settings: Further settings of uvicorn.

    Raises:
        MissingExtra: uvicorn is not installed.
    """
    uvicorn, inner = require_asgi(feature)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            asyncio.get_running_loop().set_exception_handler(_AcceptErrors())
        elif scope["type"] == "http" and {name for name, _ in scope["headers"]} >= _BOTH_LENGTHS:
            return await _refuse_ambiguous(send)  # a proxy may see two requests where the server sees one
        await app(scope, receive, send)

    protocol = partial(_Protocol, inner, limits or ServerLimits(), TinyPace())
    config = uvicorn.Config(guarded, **{**_SETTINGS, "http": protocol, **settings})
    logging.getLogger("uvicorn.error").addFilter(_is_no_end)
    return uvicorn.Server(config)


def _is_no_end(record: logging.LogRecord) -> bool:
    """Drop tracebacks of requests cancelled at shutdown; uvicorn logs one line for all of them."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def listening(host: str, port: int) -> tuple[socket.socket, str]:
    """Return a socket that listens, and its URL.

    Args:
        host: Address to listen on.
        port: Port; 0 for any that is free.

    Raises:
        ConfigError: The address cannot be used.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error}. Pass another port, or 0 for any.") from error
    shown = f"[{host}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"


def belongs_to(scope: Scope, client: str) -> bool:
    """Count the connection of a request for a client that has shown who it is; False if it has too many in use."""
    connection: Connection | None = scope.get("state", {}).get(_STATE)
    return connection is None or connection.belongs_to(client)


async def _refuse_ambiguous(send: Send) -> None:
    headers = [(b"content-length", str(len(_AMBIGUOUS)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": _AMBIGUOUS})


class _AcceptErrors:
    """Reports that no file is left for a connection once a minute; the event loop tries again after a second."""

    def __init__(self) -> None:
        self._reported = -60.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_FILES):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._reported >= 60:
            self._reported = time.monotonic()
            _logger.error("connections wait because no file is left (%s): raise the limit of ulimit -n.", error)


class _Protocol(asyncio.BufferedProtocol):
    """A connection of uvicorn under limits; one that becomes a WebSocket is in use until its end."""

    def __init__(
        self, inner: Callable[..., Any], limits: ServerLimits, pace: TinyPace, *, app_state: dict[str, Any], **rest: Any
    ):
        self._limits, self._pace = limits, pace
        self._state = dict(app_state)
        self._inner = inner(app_state=self._state, **rest)
        self._loop = asyncio.get_running_loop()
        self._arriving: asyncio.TimerHandle | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._connection: Connection | None = None
        self._is_socket = self._is_left = False
        self._buffer = bytearray()
        self._parts = TinyParts()
        self._resting: asyncio.TimerHandle | None = None
        self._held: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = peer_of(transport.get_extra_info("socket"))
        self._connection = self._limits.connections.enter(peer, transport.abort, self._is_idle)
        if self._connection is None:
            transport.write(_FULL)
            transport.close()
            return
        self._state[_STATE] = self._connection
        self._inner.connection_made(transport)
        self._inner.conn.next_event = self._parts.chunks(self._inner.conn.next_event)
        self._watch_arrival()

    def get_buffer(self, sizehint: int) -> bytearray:
        self._buffer = bytearray(_LARGE_PIECE if self._is_left else _PIECE)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data, self._buffer = bytes(memoryview(self._buffer)[:nbytes]), bytearray()
        if self._connection is None or self._leaves_rest():
            return
        if self._resting is None:
            self._feed(data)
        else:  # uvicorn has resumed reading
            self._transport.pause_reading()
            self._held.append(data)

    def _feed(self, data: bytes) -> None:
        self._inner.data_received(data)
        self._keep_upgraded()
        self._watch_arrival()
        if parts := self._parts.take():
            self._transport.pause_reading()
            self._resting = self._loop.call_later(self._pace.rest(self._loop.time(), parts), self._resume)

    def _resume(self) -> None:
        """Resume reading after a rest, unless uvicorn waits for the application."""
        self._resting, held, self._held = None, b"".join(self._held), []
        if held:
            self._feed(held)
        if self._resting is None and not (self._inner if self._is_socket else self._inner.flow).read_paused:
            self._transport.resume_reading()

    def _leaves_rest(self) -> bool:
        """Return whether a request was answered before its body ended: the rest is dropped unread, then it closes."""
        cycle = None if self._is_socket else self._inner.cycle
        if not self._is_left and cycle is not None and cycle.response_complete and cycle.more_body:
            self._is_left = True
            if self._transport.can_write_eof():
                self._transport.write_eof()  # a client that still sends can read the answer
            else:
                self._transport.close()
        return self._is_left

    def _keep_upgraded(self) -> None:
        """Stay in front of the protocol of a WebSocket, to which uvicorn gives the connection."""
        taken_by: Any = self._transport.get_protocol()
        if taken_by is not self:
            self._inner, self._is_socket = taken_by, True
            taken_by.conn.events_received = self._parts.frames(taken_by.conn.events_received)
            self._transport.set_protocol(self)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_socket else None

    def connection_lost(self, error: Exception | None) -> None:
        _cancel(self._arriving)
        _cancel(self._leaving)
        _cancel(self._resting)
        if self._connection is not None:
            self._connection.leave()
            self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        self._leaving = self._leaving or self._loop.call_later(self._limits.write_seconds, self._transport.abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        _cancel(self._leaving)
        self._leaving = None
        self._inner.resume_writing()

    def _is_idle(self) -> bool:
        if self._is_socket:
            return False
        cycle = self._inner.cycle
        return cycle is None or bool(cycle.response_complete)

    def _watch_arrival(self) -> None:
        """Start the clock with the first byte of a request, and stop it with the last."""
        cycle = None if self._is_socket else self._inner.cycle
        if self._is_socket or (cycle is not None and not cycle.more_body and not cycle.response_complete):
            _cancel(self._arriving)
            self._arriving = None
        elif self._arriving is None:
            self._arriving = self._loop.call_later(self._limits.request_seconds, self._transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
