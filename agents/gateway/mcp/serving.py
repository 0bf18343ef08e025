"""Runs a server of MCP: over HTTP with uvicorn, and over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

from turngym.agents.gateway.mcp.protocol import answered, failure
from turngym.agents.gateway.mcp.session import EnvSession
from turngym.agents.gateway.mcp.streamable import PATH, McpApp
from turngym.errors import ConfigError
from turngym.web.access import LOOPBACK
from turngym.web.asgi_server import ServerLimits, asgi_server, listening
from turngym.web.connections import Connections


def serve_http(app: McpApp, host: str, port: int, on_start: Callable[[str], None], has_token: bool) -> None:
    """Serve until the process is terminated.

    Args:
        app: The application.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        on_start: Called with the URL as soon as the server listens.
        has_token: Whether clients need a token, without which only the loopback is served.

    Raises:
        ConfigError: The address cannot be used.
        MissingExtra: uvicorn is not installed.
    """
    if not has_token and host not in LOOPBACK:
        raise ConfigError(f"without a token only the loopback is served, not {host!r}: pass --token.")
    server = asgi_server(app, "a server of MCP over HTTP", ServerLimits(Connections(most_each=1024)))
    listener, url = listening(host, port)
    with listener:
        on_start(f"{url}{PATH}")
        server.run(sockets=[listener])


_PARSE_ERROR = -32700


def serve_stdio(session: EnvSession, lines: TextIO, answers: TextIO) -> None:
    """Answer the messages of a client until its end; what the environment prints goes to standard error.

    Args:
        session: The environment; it is closed at the end.
        lines: Input of the client.
        answers: Output for the client.
    """
    with asyncio.Runner() as runner, contextlib.redirect_stdout(sys.stderr):
        try:
            for line in lines:
                if not line.strip():
                    continue
                message = _read(line)
                if message is None:
                    answer: Any = failure(None, _PARSE_ERROR, "a line is not JSON.")
                else:
                    answer = runner.run(answered(message, session))
                if answer is not None:
                    answers.write(json.dumps(answer) + "\n")
                    answers.flush()
        finally:
            runner.run(session.close())


def _read(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
