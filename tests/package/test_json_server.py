"""JSON servers: requests that a proxy would see as others, bodies byte by byte, and bodies that fill the memory."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from turngym.web.json_server import JsonHandler, JsonServer
from turngym.web.request_reader import UntilDeadline


class Echo(JsonHandler):
    def do_GET(self) -> None:
        self.send_json(200, {"path": self.path})

    def do_POST(self) -> None:
        self.send_json(200, {"path": self.path, "size": len(self.body(10**6) or b"")})


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


def test_reads_of_single_bytes_rest_so_that_more_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    near, far = socket.socketpair()
    with near, far:
        reader = UntilDeadline(near, threading.Lock())
        reader.start(60.0)
        for _ in range(100):
            far.sendall(b"x")
            assert reader.readinto(bytearray(8192)) == 1
        assert rests == [1.0] * 67
        far.sendall(b"x" * 8192)
        for _ in range(3):
            assert reader.readinto(bytearray(4096))
            far.sendall(b"x" * 4096)
        assert len(rests) <= 69, "it has caught up"
        reader.start(60.0)
        assert reader.readinto(bytearray(1)) == 1 and len(rests) <= 69


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_large_bodies_that_do_not_arrive_make_room_for_others(
    server: JsonServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JsonServer, "max_bytes", 320_000)
    head = b"POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n"
    with contextlib.ExitStack() as opened:
        place = ("127.0.0.1", server.server_address[1])
        held = [opened.enter_context(socket.create_connection(place, timeout=60)) for _ in range(8)]
        for connection in held:
            connection.sendall(head + b"x" * 250_000)
        wait_for(lambda: sum(map(is_closed, held)) == 7)
        assert b'"size": 3' in answer(server, head.replace(b"300000", b"3") + b"abc")
        (kept,) = [connection for connection in held if not is_closed(connection)]
        kept.settimeout(60)
        kept.sendall(b"x" * 50_000)
        assert b'"size": 300000' in kept.recv(1000)
        assert sum(server._held.values()) <= 320_000
    wait_for(lambda: not server._held)


def test_the_lines_of_a_head_are_bounded_in_all(server: JsonServer) -> None:
    line = b"x: " + b"a" * 40_000 + b"\r\n"
    assert b'"/"' in answer(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n")
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + line * 2)  # and no blank line
        assert connection.recv(100).startswith(b"HTTP/1.1 431 ")


def test_large_heads_that_do_not_end_make_room_for_others(server: JsonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonServer, "max_bytes", 3 * 2**16)
    with contextlib.ExitStack() as opened:
        place = ("127.0.0.1", server.server_address[1])
        held = [opened.enter_context(socket.create_connection(place, timeout=60)) for _ in range(8)]
        for connection in held:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: " + b"a" * 20_000 + b"\r\n")
        wait_for(lambda: sum(map(is_closed, held)) == 5)
