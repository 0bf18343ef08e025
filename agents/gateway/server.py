"""Runs a gateway with uvicorn, in this process or in a thread of it."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from turngym.agents.gateway.app import GatewayApp
from turngym.agents.gateway.service import Gateway
from turngym.errors import ConfigError
from turngym.types import StrPath
from turngym.web.asgi_server import ServerLimits, asgi_server, listening
from turngym.web.connections import Connections

_START_SECONDS = 60.0


def serve(
    gateway: Gateway, *, host: str = "127.0.0.1", port: int = 8000, on_start: Callable[[str], None] | None = None
) -> None:
    """Serve a gateway until the process is terminated.

    Args:
        gateway: The gateway.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        on_start: Called with the URL as soon as the server listens.

    Raises:
        ConfigError: The address cannot be used.
        MissingExtra: uvicorn is not installed.
    """
    try:
        server, listener, url = _prepared(gateway, host, port)
        with listener:
            if on_start is not None:
                on_start(url)
            shorten_collections()
            server.run(sockets=[listener])
    finally:
        gateway.close()


def shorten_collections() -> None:
    """Let the garbage collector pass over what is there so far, such as modules and the model.

    A full collection of these objects stops every answer for a quarter of a second, and finds nothing. For a process
    that does nothing but serve: what becomes garbage in cycles later is collected as always.
    """
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def serving(gateway: Gateway, *, host: str = "127.0.0.1", port: int = 0, path: StrPath | None = None) -> Iterator[str]:
    """Serve a gateway in a thread while the block runs, and yield the URL.

    Args:
        gateway: The gateway.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        path: A Unix socket to listen on as well, open to every user who can reach it.

    Raises:
        ConfigError: The address cannot be used.
        MissingExtra: uvicorn is not installed.
    """
    server, listener, url = _prepared(gateway, host, port)
    listeners = [listener, *([_unix_listener(Path(path))] if path is not None else [])]
    thread = threading.Thread(target=server.run, kwargs={"sockets": listeners}, name="turngym-gateway", daemon=True)
    with contextlib.ExitStack() as stack:
        for each in listeners:
            stack.enter_context(each)
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join(_START_SECONDS)
            gateway.close()


def _unix_listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(512)
    return listener


def _prepared(gateway: Gateway, host: str, port: int) -> tuple[Any, socket.socket, str]:
    if not host:
        raise ConfigError("a gateway needs the address that it listens on, such as 127.0.0.1.")
    limits = ServerLimits(Connections(most_each=gateway.limits.max_connections), gateway.limits.request_seconds)
    server = asgi_server(GatewayApp(gateway), "a gateway", limits)
    listener, url = listening(host, port)
    return server, listener, url
