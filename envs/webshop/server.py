"""The shop on the loopback, for a browser: one server for all environments of a process."""

from __future__ import annotations

import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.html import START, page, read_address
from turngym.envs.webshop.pages import BOUGHT
from turngym.system.processes import OncePerProcess

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Visit(NamedTuple):
    """Context of an environment's pages besides their address.

    Args:
        catalogue: The shop.
        customer: Instruction of the customer.
        is_repeated: Whether every page says it, or only the first.
    """

    catalogue: Catalogue
    customer: str
    is_repeated: bool


class ShopServer(ThreadingHTTPServer):
    """Serves the pages of visits, each below its own secret name; listens on the loopback alone.

    >>> server = ShopServer()
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.server_close()
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._visits: dict[str, Visit] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has ended in the middle of a request."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def enter(self) -> str:
        """Return the start of the addresses of a new visit, which has no pages until :meth:`tell`."""
        return f"{self.url}{secrets.token_urlsafe(16)}/"

    def tell(self, start: str, visit: Visit | None) -> None:
        """Say what a visit is about; None ends it."""
        name = start.removeprefix(self.url).rstrip("/")
        if visit is None:
            self._visits.pop(name, None)
        else:
            self._visits[name] = visit

    def answer(self, path: str) -> str | None:
        """Return the page at a path, None if there is none."""
        _, _, rest = path.partition("/")
        name, _, relative = rest.partition("/")
        visit = self._visits.get(name)
        view = None if visit is None else read_address(visit.catalogue, relative)
        if visit is None or view is None:
            return None
        is_told = relative.partition("?")[0] == START or (visit.is_repeated and view.page != BOUGHT)
        return page(visit.catalogue, view, visit.customer if is_told else "")


class _Handler(BaseHTTPRequestHandler):
    server: ShopServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with a page of the shop."""
        found = self.server.answer(self.path)
        body = (found or "<!doctype html><title>Shop</title><p>There is no such page.</p>").encode("utf8", "replace")
        self.send_response(404 if found is None else 200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _start() -> ShopServer:
    started = ShopServer()
    threading.Thread(target=started.serve_forever, name="turngym-webshop", daemon=True).start()
    return started


_shared = OncePerProcess(_start)


def shared_server() -> ShopServer:
    """Return the server of this process, started on first use; it ends with the process."""
    return _shared.get()
