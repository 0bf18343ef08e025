"""Connections of a gateway: no part of an answer waits for the client to acknowledge the part before it."""

from __future__ import annotations

import gc
import socket
from typing import Any

import pytest
from small import small_model

from turngym.agents.gateway import serving
from turngym.agents.gateway.policy import gateway_for
from turngym.agents.gateway.server import shorten_collections


def test_connections_send_small_parts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[socket.socket] = []
    create = socket.create_server

    def kept(*args: Any, **options: Any) -> socket.socket:
        listeners.append(create(*args, **options))
        return listeners[-1]

    monkeypatch.setattr(socket, "create_server", kept)
    with serving(gateway_for(small_model())):
        (listener,) = listeners
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with create(("127.0.0.1", 0)) as other:  # that accepted connections have the option of the one that listens
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with socket.create_connection(other.getsockname()):
            accepted, _ = other.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_full_collections_pass_over_what_a_server_has_loaded() -> None:
    try:
        shorten_collections()
        assert gc.get_freeze_count() > 10_000 > len(gc.get_objects())
    finally:
        gc.unfreeze()
