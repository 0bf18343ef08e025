"""Requests to the JSON servers that a proxy would see as others than the server does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from turngym.web.json_server import JsonHandler, JsonServer


class Echo(JsonHandler):
    def do_GET(self) -> None:
        self.send_json(200, {"path": self.path})

    def do_POST(self) -> None:
        self.send_json(200, {"path": self.path, "size": len(self.body(1000) or b"")})


@pytest.fixture(scope="module")
def server() -> Iterator[JsonServer]:
    with JsonServer(Echo, "a test server") as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def answer(server: JsonServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMUGGLED = {
    "two framings": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 42\r\n\r\n",
    "two equal lengths": b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a length with a sign": b"Content-Length: +0\r\n\r\n",
    "a blank before the colon": b"Content-Length : 42\r\n\r\n",
}


@pytest.mark.parametrize("head", SMUGGLED.values(), ids=SMUGGLED)
def test_a_request_hides_no_second_one(server: JsonServer, head: bytes) -> None:
    found = answer(server, b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head + HIDDEN)
    assert b"/hidden" not in found, found


def test_a_body_that_nobody_reads_is_no_second_request(server: JsonServer) -> None:
    head = f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(HIDDEN)}\r\n\r\n".encode()
    found = answer(server, head + HIDDEN)
    assert b"/hidden" not in found and found.startswith(b"HTTP/1.1 400")


def test_requests_one_after_another_are_answered(server: JsonServer) -> None:
    post = b"POST /first HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    found = answer(server, post + HIDDEN)
    assert b'"/first", "size": 3' in found and b"/hidden" in found
