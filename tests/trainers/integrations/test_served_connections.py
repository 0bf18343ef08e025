"""Connections of the servers of environments, over OpenEnv's protocol and MCP: idle ones keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from openenv_apps import fresh
from served_envs import Served

from turngym.agents.gateway.mcp import Episodes, serving
from turngym.agents.gateway.mcp.streamable import McpApp
from turngym.envs.servers.openenv import server
from turngym.envs.servers.openenv.sessions import Limits
from turngym.web import tiny_parts
from turngym.web.connections import Connections

__all__ = ["fresh"]
UPGRADE = b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Room for eight connections in a server for OpenEnv."""
    made = Connections(8, 7)
    monkeypatch.setattr(server, "_connections", lambda sessions: made)
    return made


def connected(url: str, sent: bytes = b"") -> socket.socket:
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(sent)
    return connection


async def say(socket: Any, kind: str, **data: Any) -> Any:
    await socket.send(json.dumps({"type": kind, "data": data}))
    return json.loads(await socket.recv())


@pytest.mark.integration
@pytest.mark.parametrize("sent", [b"", b"GET /ws HTTP/1.1\r\nX: ", UPGRADE, b"POST /reset HTTP/1.1\r\n"])
def test_connections_that_wait_keep_no_player_out_and_those_who_play_stay(few: Connections, sent: bytes) -> None:
    client = pytest.importorskip("websockets.asyncio.client", reason="make test-integration installs websockets")

    async def talk(url: str) -> None:
        address = url.replace("http", "ws") + "/ws"
        async with client.connect(address) as first:
            await say(first, "reset")
            held = [await asyncio.to_thread(connected, url, sent) for _ in range(40)]
            async with client.connect(address) as second:
                assert (await say(second, "reset"))["type"] == "observation"
                assert (await say(first, "step", message="go"))["type"] == "observation"
            for each in held:
                each.close()
        while len(few):  # each place is free again, those of broken handshakes too
            await asyncio.sleep(0.01)

    async def limited(url: str) -> None:
        async with asyncio.timeout(60):
            await talk(url)

    with server.serving(Served, "served", limits=Limits(max_sessions=4)) as url:
        asyncio.run(limited(url))


FRAMES = {"pings": b"\x89\x80\0\0\0\0", "empty fragments": b"\x00\x80\0\0\0\0"}


@pytest.mark.integration
@pytest.mark.parametrize("kind", FRAMES)
def test_floods_of_frames_without_messages_rest(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = pytest.importorskip("websockets.protocol", reason="make test-integration installs websockets").Protocol
    monkeypatch.setattr(tiny_parts, "_RATE", 1e-3)
    received, counts = protocol.events_received, list[int]()

    def events_received(self: Any) -> Any:
        events = received(self)
        counts.append(len(events))
        return events

    monkeypatch.setattr(protocol, "events_received", events_received)
    key = b"Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    flood = b"\x01\x80\0\0\0\0" + FRAMES[kind] * 20_000 if "fragments" in kind else FRAMES[kind] * 20_000
    with server.serving(Served, "served") as url, contextlib.ExitStack() as opened:
        for _ in range(4):
            connection = opened.enter_context(connected(url, UPGRADE[:-2] + key))
            assert b"101" in connection.recv(65536)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.sendall(flood)
        while sum(counts) < 4 * 1000:
            urllib.request.urlopen(f"{url}/health", timeout=30).close()
        for _ in range(10):
            urllib.request.urlopen(f"{url}/health", timeout=30).close()
        assert max(counts) < 1000 and sum(counts) < 4 * 2000


@contextlib.contextmanager
def serving_mcp() -> Iterator[str]:
    found: list[str] = []
    started = threading.Event()

    def start(url: str) -> None:
        found.append(url)
        started.set()

    app = McpApp(Served, Episodes())
    threading.Thread(target=serving.serve_http, args=(app, "127.0.0.1", 0, start, False), daemon=True).start()
    assert started.wait(120)
    yield found[0]


def test_an_mcp_server_answers_beside_hundreds_of_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Connections(8, 7)
    monkeypatch.setattr(serving, "Connections", lambda **_: few)
    with serving_mcp() as url:
        held = [connected(url, b"POST /mcp HTTP/1.1\r\n") for _ in range(300)]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as answer:
            assert answer.status == 200 and answer.headers["mcp-session-id"]
        assert len(few) <= 8
        for each in held:
            each.close()
