"""Who may ask the search server, and what a client that misuses its connections costs."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from turngym.envs.search.client import SearchClient
from turngym.envs.search.retriever import make_retriever
from turngym.envs.search.server import SearchServer
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError

LOCAL = make_retriever(make_world(50, 0).documents)
BODY = json.dumps({"queries": ["born"], "topk": 1}).encode()


@pytest.fixture
def started() -> Iterator[Callable[..., SearchServer]]:
    made: list[SearchServer] = []

    def start(**options: Any) -> SearchServer:
        made.append(SearchServer(LOCAL, **options))
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


def test_connections_and_threads_are_bounded_and_a_free_place_is_given_again(
    started: Callable[..., SearchServer],
) -> None:
    server, before = started(max_connections=4), threading.active_count()
    address = ("127.0.0.1", server.server_address[1])
    held = [socket.create_connection(address) for _ in range(4)]
    while threading.active_count() < before + 4:
        time.sleep(0.01)
    for _ in range(20):
        with socket.create_connection(address) as beyond:
            beyond.settimeout(30)
            assert beyond.recv(100).startswith(b"HTTP/1.1 503")
    assert threading.active_count() == before + 4
    for each in held:
        each.close()
    assert SearchClient(server.url, retries=8).search(["born"], 1)[0]


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
