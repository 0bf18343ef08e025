"""Runs a server of MCP with uvicorn."""

from __future__ import annotations

from collections.abc import Callable

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
