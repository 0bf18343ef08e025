"""Servers that mean a client of OpenEnv ill: each is a fault within its time, with bounded memory. Real sockets."""

import importlib
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from turngym.envs.adapters.openenv_line import Line, ServerFault, fetch
from turngym.envs.adapters.openenv_reading import action_field, number, read_observation

Serve = Callable[[socket.socket], None]
HEAD = b"HTTP/1.1 200 OK\r\n"


def drip(connection: socket.socket, piece: bytes, first: bytes) -> None:
    connection.sendall(first)
    for _ in range(2000):
        connection.sendall(piece)
        time.sleep(0.01)


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"x" * 65536)


@pytest.fixture
def serving() -> Iterator[Callable[[Serve], str]]:
    listeners: list[socket.socket] = []

    def start(serve: Serve) -> str:
        listeners.append(socket.create_server(("127.0.0.1", 0)))

        def each(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    serve(connection)
                except OSError:
                    return

        def accept(listener: socket.socket) -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                threading.Thread(target=each, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, args=(listeners[-1],), daemon=True).start()
        return f"http://127.0.0.1:{listeners[-1].getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize(
    ("serve", "words"),
    [
        (lambda line: drip(line, b"x", HEAD + b"\r\n"), "in time|within"),
        (lambda line: drip(line, b"X: y\r\n", HEAD), "within|100 headers"),
        (lambda line: drip(line, b"x", HEAD + b"X: "), "within"),
        (endless, "more than|within"),
        (lambda line: line.sendall(HEAD + b"\r\n" + b"[" * 200_000), "cannot be read"),
        (lambda line: line.sendall(HEAD + b"\r\n" + b'{"a":' * 100_000), "cannot be read"),
        (lambda line: line.sendall(HEAD + b"\r\n[1]"), "not an object"),
        (lambda line: line.sendall(HEAD + b'Content-Length: 50\r\n\r\n{"a"'), "cannot be read"),
        (lambda line: line.sendall(b"nonsense\r\n\r\n"), "cannot be read"),
        (lambda line: time.sleep(5), "within|cannot be read"),
    ],
)
def test_what_a_server_tells_of_itself(serving: Callable[[Serve], str], serve: Serve, words: str) -> None:
    limit = 2.0 if "within" in words else 60.0  # a machine under load may read a short answer late
    with pytest.raises(ServerFault, match=words):
        fetch(serving(serve), "/metadata", "secret", limit)


def test_a_redirection_is_not_followed(serving: Callable[[Serve], str]) -> None:
    asked: list[bool] = []

    def elsewhere(line: socket.socket) -> None:
        asked.append(True)
        line.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    other = serving(elsewhere)
    answer = f"HTTP/1.1 302 Found\r\nLocation: {other}/metadata\r\nContent-Length: 0\r\n\r\n".encode()
    with pytest.raises(ServerFault, match="status 302"):
        fetch(serving(lambda line: line.sendall(answer)), "/metadata", "", 5.0)
    assert not asked


def test_values_of_wrong_types_and_sizes() -> None:
    assert action_field({"required": 5, "properties": {"a": {"type": "string"}}}) == "a"
    assert action_field({"required": {}, "properties": []}) == ""
    values: list[Any] = [10**400, math.inf, -math.inf, "1", [1], {}]
    for value in values:
        assert number(value, 0.5) == 0.5
    for reward in [*values[:3], "x", [], {}]:
        with pytest.raises((ValueError, TypeError, OverflowError)):
            read_observation({"observation": {"text": ""}, "reward": reward})


@pytest.mark.integration
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("[" * 100_000, "not JSON"),
        ('{"type": "observation", "data": ' * 20_000, "not JSON"),
        ('{"type": "observation", "data": []}', "not an observation"),
        (json.dumps({"type": "error", "data": {"code": "x" * 10**6, "message": "y" * 10**6}}), "refused"),
        ("x" * (1 << 24) + "x", "lost"),
        ("", "did not answer"),
    ],
)
def test_answers_to_a_reset(raw: str, words: str) -> None:
    server = pytest.importorskip("websockets.sync.server", reason="make test-integration")
    importlib.import_module("websockets.asyncio.client")

    def talk(line: Any) -> None:
        for _ in line:
            if raw:
                line.send(raw)

    with server.serve(talk, "127.0.0.1", 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        limit = 60.0 if raw else 2.0
        line = Line(f"http://127.0.0.1:{running.socket.getsockname()[1]}", "", 60.0, limit)
        with pytest.raises(ServerFault, match=words) as caught:
            line.begin({}).result(60)
        assert len(str(caught.value)) < 1000
        line.close()
        running.shutdown()
