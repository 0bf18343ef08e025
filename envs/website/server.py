"""Serves the sites to real browsers: one server on the loopback for all environments of a process."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import secrets
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from turngym.envs.website.page import html_of
from turngym.envs.website.site import Site, address, parted
from turngym.envs.website.store import Store
from turngym.errors import ConfigError, missing_extra
from turngym.system.processes import OncePerProcess

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_SETTINGS: dict[str, Any] = {
    "http": "h11",
    "ws": "none",
    "lifespan": "off",
    "log_config": None,
    "access_log": False,
    "server_header": False,
}
_MOST_BYTES = 64 * 1024
_WAIT_SECONDS = 30.0


def require_server(feature: str) -> None:
    """Raise unless the packages that serve pages are installed.

    Args:
        feature: Component that needs them, for the error message.

    Raises:
        MissingExtra: One is not.
    """
    for package in ("starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra(feature, package, "web")


class Slot:
    """The site of one environment, as the server sees it.

    Args:
        site: The site.
        store: Its database; other readers access it only between requests.
    """

    def __init__(self, site: Site, store: Store) -> None:
        self.site, self.store = site, store
        self.posts = 0
        """Number of requested changes."""
        self.target = ""
        """Result of the last of them."""
        self.lock = threading.Lock()

    def page(self, path: str, base: str) -> str:
        """Return the page at a path as HTML."""
        with self.lock:
            return html_of(self.site.get(self.store.database, path), base)

    def post(self, path: str, values: dict[str, str]) -> str:
        """Make a change, and return the path to continue to."""
        with self.lock:
            self.target = self.site.post(self.store.database, path, values)
            self.posts += 1
            return self.target


class SiteServer:
    """A server in a separate thread; each slot has an unguessable address.

    Raises:
        MissingExtra: starlette or uvicorn is not installed.
        ConfigError: The server does not start.
    """

    def __init__(self) -> None:
        require_server("a web site in a browser")
        uvicorn: Any = importlib.import_module("uvicorn")
        self.process = os.getpid()
        self._slots: dict[str, Slot] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = int(self._listener.getsockname()[1])
        self._server = uvicorn.Server(uvicorn.Config(application(self._slots), **_SETTINGS))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, name="turngym-sites", daemon=True
        )
        self._thread.start()
        end = time.monotonic() + _WAIT_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.005)
        if not self._server.started:
            raise ConfigError("the server of the web sites did not start: see what uvicorn says on standard error.")

    def add(self, slot: Slot) -> str:
        """Serve a slot, and return the address that its paths follow."""
        token = secrets.token_urlsafe(18)
        self._slots[token] = slot
        return f"http://127.0.0.1:{self.port}/{token}"

    def remove(self, base: str) -> None:
        """Serve a slot no longer."""
        self._slots.pop(base.rpartition("/")[2], None)

    def stop(self) -> None:
        """End the server."""
        if self.process != os.getpid():
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(_WAIT_SECONDS)
        self._listener.close()


def application(slots: dict[str, Slot]) -> Any:
    """Return the Starlette application that serves some slots.

    Args:
        slots: The first part of the path -> slot.
    """
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        token, path = request.path_params["token"], "/" + request.path_params["path"]
        slot = slots.get(token)
        if slot is None:
            return PlainTextResponse("There is nothing here.", 404, _HEADERS)
        query = request.url.query
        path = address(*parted(f"{path}?{query}")) if query else path
        if request.method != "POST":
            return HTMLResponse(slot.page(path, f"/{token}"), headers=_HEADERS)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return PlainTextResponse("That is too much.", 413, _HEADERS)
        target = slot.post(path, _form(body))
        return RedirectResponse(f"/{token}{target}", 303, _HEADERS)

    return Starlette(routes=[Route("/{token}/{path:path}", answer, methods=["GET", "POST"])])


def _form(body: bytes) -> dict[str, str]:
    """Return what a form sent.

    >>> _form(b"text=two+words&box=yes")
    {'text': 'two words', 'box': 'yes'}
    """
    text = body.decode("ascii", "replace")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=100))
    except ValueError:
        return {}


def _start() -> SiteServer:
    started = SiteServer()
    atexit.register(started.stop)
    return started


_shared = OncePerProcess(_start)


def shared_server() -> SiteServer:
    """Return the server of this process, started on first use.

    Raises:
        MissingExtra: starlette or uvicorn is not installed.
    """
    return _shared.get()


def close_shared_server() -> None:
    """Close the server of this process, if there is one; the next use starts a new one."""
    held = _shared.take()
    if held is not None:
        held.stop()
