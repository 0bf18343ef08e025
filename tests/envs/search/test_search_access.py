"""Who may ask the search server, and what a client that misuses its connections costs."""

import contextlib
import http.client
import json
import os
import selectors
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from turngym.envs.search.client import SearchClient
from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.retriever import Retriever, make_retriever
from turngym.envs.search.server import SearchServer
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError

LOCAL = make_retriever(make_world(50, 0).documents)
BODY = json.dumps({"queries": ["born"], "topk": 1}).encode()


@pytest.fixture
def started() -> Iterator[Callable[..., SearchServer]]:
    made: list[SearchServer] = []

    def start(**options: Any) -> SearchServer:
        made.append(SearchServer(**{"retriever": LOCAL, **options}))
        threading.Thread(target=made[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return made[-1]

    yield start
    for each in made:
        each.shutdown()
        each.server_close()


def status(server: SearchServer, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    connection.request("POST", "/retrieve", BODY, headers)
    found = connection.getresponse().status
    connection.close()
    return found


def test_web_pages_and_other_names_of_the_loopback_are_refused(started: Callable[..., SearchServer]) -> None:
    server = started()
    own = f"127.0.0.1:{server.server_address[1]}"
    for headers in ({"Host": "evil.org"}, {"Host": ""}, {"Origin": "http://evil.org"}, {"Origin": "null"}):
        assert status(server, headers) == 403
    for headers in ({"Host": own}, {"Host": "localhost"}, {"Host": own, "Origin": f"http://{own}"}):
        assert status(server, headers) == 200


def test_with_a_token_any_host_is_served_and_no_page_of_another_origin(started: Callable[..., SearchServer]) -> None:
    server, token = started(token="secret"), {"Authorization": "Bearer secret"}
    assert status(server, {"Host": "example.org", **token}) == 200
    assert status(server, {"Origin": "http://evil.org", **token}) == 403
    assert status(server, {"Authorization": "Bearer other"}) == status(server, {}) == 401


class Held(Retriever):
    """Answers when the test lets it."""

    version = LOCAL.version

    def __init__(self) -> None:
        self.released, self.begun = threading.Event(), threading.Semaphore(0)

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        self.begun.release()
        self.released.wait(30)
        return LOCAL.search(queries, top_k)


def connected(server: SearchServer, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30)
    connection.sendall(sent)
    return connection


def is_closed(connection: Any) -> bool:
    try:
        return not connection.recv(4096)
    except ConnectionResetError:
        return True


REQUEST = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(BODY)


def test_connections_and_threads_are_bounded_and_a_free_place_is_given_again(
    started: Callable[..., SearchServer],
) -> None:
    held = Held()
    server, before = started(retriever=held, max_connections=4), threading.active_count()
    answered = [connected(server, REQUEST + BODY) for _ in range(4)]
    for _ in answered:
        assert held.begun.acquire(timeout=30)
    for _ in range(20):
        with connected(server) as beyond:
            assert beyond.recv(100).startswith(b"HTTP/1.1 503")
    assert threading.active_count() == before + 4
    held.released.set()
    for each in answered:
        assert each.recv(100).startswith(b"HTTP/1.1 200")
        each.close()
    assert SearchClient(server.url, retries=8).search(["born"], 1)[0]


def test_searches_at_once_are_bounded_and_other_requests_are_answered(started: Callable[..., SearchServer]) -> None:
    held = Held()
    server = started(retriever=held)
    most = max(4, os.cpu_count() or 1)
    asked = [connected(server, REQUEST + BODY) for _ in range(most + 3)]
    for _ in range(most):
        assert held.begun.acquire(timeout=30)
    with urllib.request.urlopen(f"{server.url}/health", timeout=30) as answer:
        assert answer.status == 200
    assert not held.begun.acquire(timeout=0.1)
    held.released.set()
    for each in asked:
        assert each.recv(100).startswith(b"HTTP/1.1 200")
        each.close()


@pytest.mark.parametrize("sent", [b"", b"POST /retrieve HTTP/1.1\r\nX: ", REQUEST, REQUEST + BODY])
def test_connections_that_wait_keep_nobody_out(started: Callable[..., SearchServer], sent: bytes) -> None:
    server = started(max_connections=4)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as readable:
        for _ in range(40):
            readable.register(stack.enter_context(connected(server, sent)), selectors.EVENT_READ)
        assert SearchClient(server.url, retries=0).search(["born"], 1)[0]
        while len(readable.get_map()) > 4:  # the server closes the others, those that have waited longest first
            events = readable.select(timeout=30)
            assert events, f"{len(readable.get_map())} connections are still open"
            for key, _ in events:
                if is_closed(key.fileobj):
                    readable.unregister(key.fileobj)


class Long(Retriever):
    """Finds passages that no buffer of a connection takes."""

    version = LOCAL.version

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        return [[Hit(Document("d", "", "x" * 2**20), 1.0)] * top_k for _ in queries]


def test_a_slow_reader_of_a_large_answer_is_given_up(started: Callable[..., SearchServer]) -> None:
    server = started(retriever=Long(), request_seconds=0.5)
    body = json.dumps({"queries": ["born"], "topk": 64}).encode()
    with connected(
        server, b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) as slow:
        slow.sendall(body)
        end = time.monotonic() + 60
        while time.monotonic() < end and slow.recv(100):
            time.sleep(0.05)
            if not server._open:  # it would be held until all is read
                return
    raise AssertionError("the connection is still held")


def test_an_interrupt_while_a_thread_starts_is_not_lost(
    started: Callable[..., SearchServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = started(max_connections=1)
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        thread.join(30)  # its connection is over, and its place free
        raise KeyboardInterrupt

    ours, other = socket.socketpair()
    other.close()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading.Thread, "start", interrupted)
        server.process_request(ours, ("127.0.0.1", 1))
    ours.close()
    assert SearchClient(server.url, retries=0).search(["born"], 1)[0]


@pytest.mark.parametrize(
    "head", [b"POST /retrieve HTTP/1.1\r\nX: ", b"", b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\n"]
)
def test_a_request_that_comes_byte_by_byte_is_given_up(started: Callable[..., SearchServer], head: bytes) -> None:
    server = started(request_seconds=0.5)
    if head.endswith(b"localhost\r\n"):
        head += b"Content-Length: 100000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as slow:
        slow.settimeout(30)
        slow.sendall(head or b"P")
        is_open, end = True, time.monotonic() + 30
        while is_open and time.monotonic() < end:
            try:
                slow.sendall(b"x")
                slow.settimeout(0.05)
                is_open = bool(slow.recv(1000))
            except TimeoutError:
                continue
            except OSError:
                is_open = False
        assert not is_open
    assert SearchClient(server.url).search(["born"], 1)[0]


def test_numbers_that_make_no_sense_are_refused() -> None:
    for options in ({"max_connections": 0}, {"request_seconds": 0.0}, {"request_seconds": float("inf")}):
        with pytest.raises(ConfigError, match="a search server needs"):
            SearchServer(LOCAL, **options)
