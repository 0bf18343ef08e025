"""Runs a server of MCP with uvicorn."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable
from typing import Any

from turngym.errors import ConfigError, missing_extra
from turngym.trainers.integrations.mcp_server.streamable import PATH, McpApp
from turngym.web.access import LOOPBACK

_SETTINGS: dict[str, Any] = {
    "ws": "none",
    "timeout_graceful_shutdown": 5,
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "lifespan": "on",
}


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
    try:
        uvicorn = importlib.import_module("uvicorn")
    except ModuleNotFoundError as error:
        raise missing_extra("a server of MCP over HTTP", str(error.name), "serve") from error
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error}. Pass another port, or 0 for any.") from error
    with listener:
        shown = f"[{host}]" if ":" in host else host
        on_start(f"http://{shown}:{listener.getsockname()[1]}{PATH}")
        settings: dict[str, Any] = {"timeout_graceful_shutdown": 5, "server_header": False}
        settings |= {
            "ws": "none",
            "log_level": "warning",
            "access_log": False,
            "lifespan": "on",
            "proxy_headers": False,
        }
        uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[listener])
