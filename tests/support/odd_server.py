"""A web server that answers with whatever a test wants."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[int], tuple[int, bytes] | None]


class Odd(ThreadingHTTPServer):
    """Answers with what a function of the number of the request says: status and body, or None to hang up."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), OddHandler)
        self.answer, self.requests = answer, 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class OddHandler(BaseHTTPRequestHandler):
    server: Odd

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests += 1
        found = self.server.answer(self.server.requests)
        if found is None:
            self.close_connection = True
            return
        self.send_response(found[0])
        self.send_header("Content-Length", str(len(found[1])))
        self.end_headers()
        self.wfile.write(found[1])


@contextmanager
def odd_servers() -> Iterator[Callable[[Answer], Odd]]:
    """Give what starts servers; they end with the block."""
    made: list[Odd] = []

    def make(answer: Answer) -> Odd:
        made.append(Odd(answer))
        threading.Thread(target=made[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return made[-1]

    yield make
    for each in made:
        each.shutdown()
        each.server_close()
