"""Limits on connections: who is closed when a server is full, and what never is."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
import pytest

from turngym.web import tiny_parts
from turngym.web.asgi_server import Receive, Scope, Send, ServerLimits, asgi_server, belongs_to, listening
from turngym.web.connections import Connection, Connections, free_files


@dataclass
class Client:
    closed: bool = False
    idle: bool = True
    connection: Connection | None = field(default=None)

    def close(self) -> None:
        self.closed = True


def entered(connections: Connections, peer: str, idle: bool = True) -> Client:
    client = Client(idle=idle)
    client.connection = connections.enter(peer, client.close, lambda: client.idle)
    return client


def test_the_largest_client_gives_way_when_a_server_is_full() -> None:
    connections = Connections(most=12)
    quiet = entered(connections, "quiet")
    crowd = [entered(connections, "crowd") for _ in range(100)]
    assert not quiet.closed and len(connections) == 7, "a peer has half of all"
    assert sum(not each.closed for each in crowd) == 6 and not any(each.closed for each in crowd[-6:])
    others = [entered(connections, f"other {k}") for k in range(6)]
    assert len(connections) == 12 and not quiet.closed and not any(each.closed for each in others)


def test_connections_in_use_are_never_closed() -> None:
    connections = Connections(most=4)
    for peer in ("a", "b"):
        assert [entered(connections, peer, idle=False).connection is None for _ in range(3)] == [False, False, True]
    assert entered(connections, "c").connection is None and len(connections) == 4


def test_a_client_that_is_known_has_a_limit_of_its_own() -> None:
    connections = Connections(most=100, most_each=2)
    clients = [entered(connections, "peer", idle=False) for _ in range(3)]
    found = [each.connection is not None and each.connection.belongs_to("episode") for each in clients]
    assert found == [True, True, False] and connections.of("episode") == 2
    clients[0].idle = True
    assert clients[2].connection is not None and clients[2].connection.belongs_to("episode")
    assert clients[0].closed and connections.of("episode") == 2
    for each in clients:
        assert each.connection is not None
        each.connection.leave()
        each.connection.leave()
    assert len(connections) == 0


def test_a_server_opens_no_more_connections_than_there_are_files() -> None:
    assert 8 <= Connections().most <= max(free_files(), 8)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    if scope["path"].startswith("/of/") and not belongs_to(scope, scope["path"]):
        await send({"type": "http.response.start", "status": 429, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        return
    size = 0
    if scope["method"] == "POST":
        is_more = True
        while is_more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            size, is_more = size + len(event.get("body", b"")), event.get("more_body", False)
    body = b"x" * 50_000_000 if scope["path"] == "/large" else f"{scope['path']} {size}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running(limits: ServerLimits, **settings: Any) -> Iterator[tuple[str, int]]:
    server = asgi_server(app, "a test", limits, **settings)
    listener, _ = listening("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    with listener:
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(60)


def answer(place: tuple[str, int], request: bytes) -> bytes:
    """Send bytes, and return everything that comes until the server closes the connection."""
    with socket.create_connection(place, timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


GET = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_silent_connections_do_not_keep_others_out() -> None:
    limits = ServerLimits(Connections(most=40))
    with running(limits) as place, contextlib.ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection(place, timeout=60)) for _ in range(200)]
        assert b"/hello 0" in answer(place, GET)
        assert len(limits.connections) <= 20
        assert sum(_is_closed(each) for each in silent) >= 180
        keyed = opened.enter_context(socket.create_connection(place, timeout=60))
        keyed.sendall(GET.replace(b"/hello", b"/of/a").replace(b"close", b"keep-alive"))
        found = b""
        while b"/of/a 0" not in found:
            found += keyed.recv(65536)
        more = [opened.enter_context(socket.create_connection(place, timeout=60)) for _ in range(100)]
        wait_for(lambda: sum(map(_is_closed, more)) >= 80)
        assert not _is_closed(keyed), "a client with one connection keeps it"


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /again HTTP/1.1\r\nHost: ",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    ],
    ids=["nothing", "head", "body", "chunk", "second head", "body that nobody reads"],
)
def test_a_request_that_does_not_arrive_in_time_ends_its_connection(begun: bytes) -> None:
    limits = ServerLimits(Connections(most=8), request_seconds=0.2)
    with running(limits) as place, socket.create_connection(place, timeout=60) as connection:
        connection.sendall(begun)
        while b"again" in begun and b"/ 0" not in connection.recv(65536):
            pass
        if b"again" in begun:  # the clock starts with the next byte
            connection.sendall(b"x")
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(65536):
                pass
        wait_for(lambda: not len(limits.connections))


def test_an_answer_that_nobody_takes_ends_its_connection() -> None:
    limits = ServerLimits(Connections(most=8), write_seconds=0.2)
    with running(limits) as place, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(place)
        connection.sendall(GET.replace(b"/hello", b"/large"))
        wait_for(lambda: len(limits.connections))
        wait_for(lambda: not len(limits.connections))
        assert b"/hello 0" in answer(place, GET)


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLED: list[bytes] = [
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 34\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 34\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n0_0\r\n\r\n" + HIDDEN,
    b"GET / HTTP/1.1\r\nHost: x\r\nA: b\0\r\n\r\n" + HIDDEN,
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + HIDDEN,
    b"GET / HTTP/1.1 \r\nHost: x\r\n\r\n" + HIDDEN,
]


def test_a_request_hides_no_second_one() -> None:
    with running(ServerLimits()) as place:
        for request in SMUGGLED:
            found = answer(place, request)
            assert b"/hidden" not in found and found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), (request, found)


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of events which h11 finds in each piece of data."""
    counts: list[int] = []
    receive, next_event = h11.Connection.receive_data, h11.Connection.next_event

    def receive_data(self: h11.Connection, data: bytes) -> None:
        counts.append(0)
        receive(self, data)

    def counted(self: h11.Connection) -> Any:
        counts[-1:] = [sum(counts[-1:]) + 1]
        return next_event(self)

    monkeypatch.setattr(h11.Connection, "receive_data", receive_data)
    monkeypatch.setattr(h11.Connection, "next_event", counted)
    return counts


CHUNKS = b"1\r\n \r\n" * 100_000


@pytest.mark.parametrize("size", [1, 64])
def test_tiny_chunks_are_read_in_small_steps_and_then_rest(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
    chunks = chunk * (600_000 // len(chunk))
    monkeypatch.setattr(tiny_parts, "_RATE", 1e-3)
    counts = parsed(monkeypatch)
    limits = ServerLimits(request_seconds=0.5)
    with running(limits) as place, contextlib.ExitStack() as opened:
        connections = [opened.enter_context(socket.create_connection(place, timeout=60)) for _ in range(3)]
        for connection in connections:
            connection.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n" + chunks[:12_000])
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                connection.sendall(chunks)
                while connection.recv(65536):
                    pass
        each = 4096 // len(chunk)
        assert max(counts) < each + 10 and sum(counts) < 3 * (32 + each + 20), (
            "the rest was not read until their time was over"
        )
        assert b"/hello 0" in answer(place, GET)


def test_a_body_that_is_written_in_tiny_chunks_arrives() -> None:
    body = {"messages": [{"role": "user", "content": f"message {k}"} for k in range(1000)]}
    pieces = [piece.encode() for piece in json.JSONEncoder().iterencode(body)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    assert len(pieces) > 8000
    with running(ServerLimits()) as place:
        found = answer(place, b"POST /all HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n" + chunks + GET)
        assert f"/all {sum(map(len, pieces))}".encode() in found and b"/hello 0" in found


def test_tiny_chunks_of_all_connections_share_one_pace() -> None:
    pace = tiny_parts.TinyPace()
    rests = [pace.rest(7.0, 500) for _ in range(40)]
    assert rests == pytest.approx([0.05 * k for k in range(1, 41)])


def test_the_rest_of_a_request_that_has_been_answered_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = parsed(monkeypatch)
    limits = ServerLimits()
    with running(limits) as place, socket.create_connection(place, timeout=60) as connection:
        connection.sendall(b"GET /early HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n")
        found = connection.recv(65536)
        while b"/early 0" not in found:
            found += connection.recv(65536)
        before = sum(counts)
        connection.sendall(CHUNKS)
        assert connection.recv(65536) == b"", "the answer is the last"
        connection.sendall(HIDDEN)
        connection.shutdown(socket.SHUT_WR)
        wait_for(lambda: not len(limits.connections))
        assert sum(counts) <= before + 2


def test_bodies_in_chunks_of_any_size_arrive_in_order() -> None:
    sizes = [1] * 900 + [63, 64, 4095, 4096, 4097, 100_000] + [200] * 3000
    body = b"".join(b"%x\r\n%s\r\n" % (size, b"y" * size) for size in sizes) + b"0\r\n\r\n"
    request = b"POST /all HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n" + body
    with running(ServerLimits()) as place:
        assert f"/all {sum(sizes)}".encode() in answer(place, request + GET)
        assert b"/hello 0" in answer(place, request + GET)


def test_the_end_of_a_server_cancels_requests_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.ExitStack() as opened, running(ServerLimits(), timeout_graceful_shutdown=0) as place:
        for _ in range(3):
            connection = opened.enter_context(socket.create_connection(place, timeout=60))
            connection.sendall(b"POST /all HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nthe beginning")
        assert b"/hello 0" in answer(place, GET)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "running task(s)" in lines[0], lines
