"""Runs the server for OpenEnv's clients with uvicorn, in this process or in a thread of it."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium

import turngym
from turngym.envs.servers.openenv.app import OpenEnvApp
from turngym.envs.servers.openenv.http import LARGEST_MESSAGE, About
from turngym.envs.servers.openenv.sessions import Limits
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError, TurngymError, missing_extra
from turngym.web.asgi_server import ServerLimits, asgi_server, listening
from turngym.web.connections import Connections, allowed_connections

_START_SECONDS = 60.0
_SETTINGS = {
    "ws": "websockets-sansio",
    "ws_max_size": LARGEST_MESSAGE,
    "ws_ping_interval": 60.0,
    "ws_ping_timeout": 300.0,  # a client may be busy for long without being gone
    "ws_per_message_deflate": False,  # costs each session more memory than all the rest
}


def serve(
    make: Callable[[], Any],
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    limits: Limits | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve an environment until the process is terminated.

    Args:
        make: Makes one environment; called once for each session, in a thread.
        name: Name of the environment for clients.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        token: Token that clients send as ``Authorization: Bearer TOKEN``.
        limits: Limits of the server.
        on_start: Called with the URL as soon as the server listens.

    Raises:
        ConfigError: The host is not the loopback and there is no token, or the address cannot be used.
        MissingExtra: uvicorn is not installed.
    """
    server, listener, url = _prepared(make, name, host, port, token, limits)
    with listener:
        if on_start is not None:
            on_start(url)
        server.run(sockets=[listener])


@contextlib.contextmanager
def serving(
    make: Callable[[], Any],
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    limits: Limits | None = None,
) -> Iterator[str]:
    """Serve an environment in a thread while the block runs, and yield the URL; arguments as those of :func:`serve`."""
    server, listener, url = _prepared(make, name, host, port, token, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="turngym-server", daemon=True)
    with listener:
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join(_START_SECONDS)


def _prepared(
    make: Callable[[], Any], name: str, host: str, port: int, token: str, limits: Limits | None
) -> tuple[Any, socket.socket, str]:
    if not token and not is_loopback(host):
        raise ConfigError(
            f"host {host!r} can be reached from elsewhere: pass a token that clients have to send, or serve 127.0.0.1."
        )
    limits = limits or Limits()
    connections = _connections(limits.max_sessions)
    app = OpenEnvApp(make, about(make, name), limits, token)
    try:
        importlib.import_module("websockets")
    except ModuleNotFoundError as error:
        raise missing_extra("serving an environment", str(error.name), "serve") from error
    server = asgi_server(app, "serving an environment", ServerLimits(connections), **_SETTINGS)
    listener, url = listening(host, port)
    return server, listener, url


def _connections(sessions: int) -> Connections:
    """Return room for the WebSockets of all sessions, and for requests over HTTP.

    Raises:
        TurngymError: The system does not allow that many open files.
    """
    most = allowed_connections(2 * sessions + 64)
    if most < sessions:
        raise TurngymError(
            f"{sessions} sessions need more open files than the system allows: serve at most {most} sessions, or raise "
            "the limit (ulimit -n)."
        )
    return Connections(most, most - most // 8)


def about(make: Callable[[], Any], name: str) -> About:
    """Make one environment, and return its description for clients.

    Raises:
        ConfigError: Its observations are not text.
    """
    env = make()
    try:
        space = env.observation_space
        text = space["text"] if isinstance(space, gymnasium.spaces.Dict) and "text" in space.spaces else space
        if not isinstance(env.action_space, gymnasium.spaces.Text | Unicode) or not isinstance(
            text, gymnasium.spaces.Text | Unicode
        ):
            raise ConfigError(f"{name} cannot be served: its actions are not text, or its observations hold none.")
        instructions = str(env.get_wrapper_attr("instructions")) if env.has_wrapper_attr("instructions") else ""
        finds = env.has_wrapper_attr("finds_action") and bool(env.get_wrapper_attr("finds_action"))
    finally:
        env.close()
    described = f"{name} of turngym, a text environment of many turns."
    return About(name, described, instructions, turngym.__version__, finds)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
