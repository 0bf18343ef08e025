"""What a sandbox forwards to the gateway, and back."""

import os
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from turngym.agents.gateway.programs.sandbox.inside import Forwarder

ANSWER = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[int, socket.socket]]:
    """A port that is forwarded, and where connections to it arrive."""
    with socket.socket(socket.AF_UNIX) as gateway, socket.create_server(("127.0.0.1", 0)) as free:
        gateway.bind(str(tmp_path / "gateway"))
        gateway.listen()
        gateway.settimeout(60)
        port = free.getsockname()[1]
        free.close()
        forwarder, (woken, wake), stops = Forwarder(port, str(tmp_path / "gateway")), os.pipe(), threading.Event()

        def forward() -> None:
            while not stops.is_set():
                forwarder.step(woken)

        thread = threading.Thread(target=forward)
        thread.start()
        yield port, gateway
        stops.set()
        os.write(wake, b"x")
        thread.join()
        forwarder._selector.close()
        for end in (forwarder._listener, *forwarder._pairs):
            end.close()
        for each in (woken, wake):
            os.close(each)


def everything(end: socket.socket) -> bytes:
    return b"".join(iter(partial(end.recv, 10**5), b""))


def test_an_answer_arrives_though_the_request_was_not_read_to_its_end(ends: tuple[int, socket.socket]) -> None:
    """Servers refuse by the head alone, and close while the body is on its way."""
    port, gateway = ends
    for size in (1, 10**6):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"POST / HTTP/1.1\r\n\r\n")
            server, _ = gateway.accept()
            assert server.recv(1000).startswith(b"POST")
            server.sendall(ANSWER)
            server.close()
            client.sendall(bytes(size))
            client.shutdown(socket.SHUT_WR)
            assert everything(client) == ANSWER


def test_both_directions_end_by_themselves(ends: tuple[int, socket.socket]) -> None:
    port, gateway = ends
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        server, _ = gateway.accept()
        with server:
            assert everything(server) == b"question"
            server.sendall(bytes(10**6))
        assert everything(client) == bytes(10**6)
