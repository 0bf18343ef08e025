"""The viewer as a small server for one person on this machine.

It listens on the loopback address alone and answers only requests with the token in its address. It only reads:
there is no way to name a file to it, since episodes are asked for by number.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.forms import as_json
from turngym.benchmarks.pages.viewer.page import viewer_page

HOST = "127.0.0.1"
_LONGEST_QUERY = 1000
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ViewerServer(ThreadingHTTPServer):
    """Serves one viewer until it is shut down.

    Args:
        viewer: Content.
        port: A port; 0 takes a free one.
        query: Initial filter of the list.

    >>> from pathlib import Path
    >>> import tempfile
    >>> from turngym.benchmarks.pages.viewer.runs import open_run
    >>> file = Path(tempfile.mkdtemp()) / "run.jsonl"
    >>> _ = file.write_text('{"actions": ["up"]}')
    >>> with ViewerServer(Viewer(open_run(file))) as server:
    ...     server.address.startswith("http://127.0.0.1:")
    True
    """

    daemon_threads: ClassVar[bool] = True  # type: ignore[misc]
    allow_reuse_address: ClassVar[bool] = False  # type: ignore[misc]

    def __init__(self, viewer: Viewer, port: int = 0, query: str = "") -> None:
        super().__init__((HOST, port), _Handler)
        self.viewer = viewer
        self.token = secrets.token_urlsafe(24)
        self.page = viewer_page(viewer.title, viewer.subtitle, {**viewer.about(), "query": query})

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Address of the page, including the token."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a browser go that has closed its connection; anything else is a fault to be seen."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "turngym", ""
    timeout = 60

    def do_GET(self) -> None:
        """Answer with the page, or with what it asks for."""
        if self.headers.get("Host") not in (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}"):
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers to its own address alone")
            return
        parts = urlsplit(self.path)
        token, slash, name = parts.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the address needs the token that `turngym view` printed")
            return
        if name == "":
            self._send(self.server.page.encode(), "text/html; charset=utf-8")
            return
        answer = _ANSWERS.get(name)
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        try:
            asked = {key: values[-1] for key, values in parse_qs(parts.query, max_num_fields=10).items()}
            content = answer(self.server.viewer, asked)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "this question cannot be read")
            return
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such episode")
            return
        self._send(as_json(content).encode(), "application/json")

    def _send(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._send(f"{reason}\n".encode(), "text/plain; charset=utf-8", status)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the address of a request holds the token."""


def _rows(viewer: Viewer, asked: dict[str, str]) -> Any:
    return viewer.rows(_number(asked, "from"), _number(asked, "count", 50), asked.get("q", "")[:_LONGEST_QUERY])


def _episode(viewer: Viewer, asked: dict[str, str]) -> Any:
    return viewer.episode(_number(asked, "n"))


def _replayed(viewer: Viewer, asked: dict[str, str]) -> Any:
    return viewer.replayed(_number(asked, "n"), _number(asked, "side"))


def _number(asked: dict[str, str], key: str, otherwise: int = 0) -> int:
    """Return a number that was asked for.

    Raises:
        ValueError: It is none, or below 0.
    """
    found = asked.get(key, str(otherwise))
    if not found.isascii() or not found.isdigit() or len(found) > 12:
        raise ValueError(f"no number: {found[:20]!r}")
    return int(found)


_ANSWERS: dict[str, Callable[[Viewer, dict[str, str]], Any]] = {
    "rows": _rows,
    "episode": _episode,
    "replayed": _replayed,
}
