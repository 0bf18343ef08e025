"""Large requests: refused before any work if they cannot fit, prepared off the event loop, and not kept."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from gateway_clients import Client, gateway_client, user

from turngym.agents.gateway import GatewayEpisode, GatewayLimits, app, operator, service
from turngym.agents.gateway.body import read_object
from turngym.agents.gateway.bounds import BytesUnderWay
from turngym.agents.gateway.conversations import messages
from turngym.agents.gateway.conversations.linking import linked
from turngym.agents.gateway.refusal import Refusal
from turngym.agents.gateway.world import World

LIMITS = GatewayLimits(max_new_tokens=6, max_messages=100, max_bytes_each=2 * 2**20, max_bytes=5 * 2**20)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def called(arguments: str) -> dict[str, Any]:
    """Return an answer that calls a tool."""
    call = {"id": "x", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


LARGE: dict[str, tuple[str, Any]] = {
    "a long message": ("chat/completions", {"messages": [user("up " * 200_000)]}),
    "a message too long for the context": ("chat/completions", {"messages": [user("up " * 30_000)]}),
    "many messages": ("chat/completions", {"messages": [user("x")] * 20_000}),
    "more messages than are allowed": ("chat/completions", {"messages": [user("x")] * 101}),
    "nested arguments": ("chat/completions", {"messages": [called("[" * 400_000), user("x")]}),
    "many tools": ("chat/completions", {"messages": [user("x")], "tools": [TOOL] * 5000}),
    "tokens to count": ("messages/count_tokens", {"messages": [user("up " * 200_000)]}),
    "a long prompt": ("completions", {"prompt": "up " * 100_000}),
    "many token ids": ("completions", {"prompt": [5] * 90_000}),
    "more token ids than fit": ("completions", {"prompt": [5] * 5000}),
    "many empty lists": ("chat/completions", {"messages": [user("x")], "stop": [[]] * 100_000}),
    "a long input": ("responses", {"input": "up " * 100_000}),
    "long instructions": ("responses", {"input": "up", "instructions": "up " * 100_000}),
    "a long system": ("messages", {"system": "up " * 100_000, "max_tokens": 1, "messages": [user("x")]}),
    "long reasoning": (
        "chat/completions",
        {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "x" * 100_000}, user("x")]},
    ),
    "a long schema": (
        "chat/completions",
        {
            "messages": [user("x")],
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"title": "x" * 100_000}}},
        },
    ),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with gateway_client(limits=LIMITS) as found:
        yield found


@pytest.fixture
def episode(client: Client) -> GatewayEpisode:
    return client.gateway.open()


def _playing(client: Client) -> GatewayEpisode:
    """Return an episode that has an environment and rewards itself."""
    episode = client.gateway.open()
    episode.world, episode.rewards_itself = World("Say up.", "Go.", lambda action: None), True
    return episode


@pytest.mark.parametrize("name", LARGE)
def test_what_cannot_fit_is_refused_before_it_is_rendered(
    client: Client, episode: GatewayEpisode, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[Any] = []
    for work in ("linked", "linked_text"):
        monkeypatch.setattr(service, work, lambda *given: rendered.append(given))
    path, body = LARGE[name]
    status, content = client.send(f"/episode/{episode.id}/v1/{path}", body, key=episode.key)
    assert status == 400 and not rendered, content
    error = json.loads(content)["error"]
    assert error.get("code") == "context_length_exceeded" or "messages" in error["message"] or "messages" in path


def test_arguments_are_read_without_a_step_for_each_character(client: Client, episode: GatewayEpisode) -> None:
    for arguments in ("[" * 60_000, "{" * 60_000, '{"a": ' + "[" * 101 + "]" * 101 + "}", "[" * 2000 + "]" * 2000):
        client.chat(episode, [called(arguments[:3000]), user("x")])
    assert len(episode.calls) == 4


def test_others_are_answered_while_a_large_request_is_prepared(
    client: Client, episode: GatewayEpisode, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, other = threading.Event(), threading.Event(), client.gateway.open()

    def slow(request: Any, *rest: Any) -> Any:
        if len(request.messages[0].text) > 40_000:
            began.set()
            assert go_on.wait(120)
        return linked(request, *rest)

    monkeypatch.setattr(service, "linked", slow)
    found: list[Any] = []
    body = {"messages": [user("up " * 20_000)]}
    path = f"/episode/{episode.id}/v1/chat/completions"
    thread = threading.Thread(target=lambda: found.append(client.send(path, body, key=episode.key)))
    thread.start()
    assert began.wait(120)
    assert client.ask("/health") == {"status": "healthy"}
    client.chat(other, [user("up")])
    assert not found
    go_on.set()
    thread.join(120)
    assert found[0][0] == 400 and b"maximum context length" in found[0][1]


def test_a_request_that_takes_too_long_to_prepare_is_refused() -> None:
    with gateway_client(limits=GatewayLimits(max_new_tokens=6, work_seconds=1e-9)) as client:
        episode = client.gateway.open()
        path = f"/episode/{episode.id}/v1/chat/completions"
        status, content = client.send(path, {"messages": [user("up " * 12_000)]}, key=episode.key)
        assert status == 400 and b"takes too long to prepare" in content
        client.chat(episode, [user("up")])


@pytest.mark.parametrize("path", ["messages/count_tokens", "chat/completions"])
def test_every_request_takes_from_the_allowance_before_it_is_read(path: str) -> None:
    with gateway_client(limits=GatewayLimits(max_new_tokens=2, calls_per_second=0.1)) as client:
        episode = client.gateway.open()
        bodies: list[Any] = [{"messages": [user("up")]}, b"x" * 100]
        found = [client.send(f"/episode/{episode.id}/v1/{path}", body, key=episode.key)[0] for body in bodies]
        assert found == [200, 429]


@pytest.mark.parametrize("path", ["env", "mcp", "reward", "finish", "v1/models"])
def test_whatever_an_agent_asks_takes_from_its_allowance(path: str) -> None:
    with gateway_client(limits=GatewayLimits(max_new_tokens=2, calls_per_second=0.1)) as client:
        episode = _playing(client)
        method = "GET" if path == "v1/models" else "POST"
        found = [
            client.send(f"/episode/{episode.id}/{path}", b"x", key=episode.key, method=method)[0] for _ in range(2)
        ]
        assert found == [200 if method == "GET" else 400, 429] and not episode.arriving


@pytest.mark.parametrize("path", ["env", "mcp", "reward", "finish"])
def test_what_is_no_request_of_the_model_is_short_and_read_under_the_same_bounds(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def reading(raw: bytes, max_depth: int) -> Any:
        read.append(len(raw))
        return read_object(raw, max_depth)

    monkeypatch.setattr(app, "read_object", reading)
    episode = _playing(client)
    body = b'{"action": "x", "a": [' + b"[]," * 400_000 + b"[]]}"
    status, content = client.send(f"/episode/{episode.id}/{path}", body, key=episode.key)
    assert status == 413 and b"at most 65536 bytes" in content and not read
    assert client.send(f"/episode/{episode.id}/{path}", b"[" * 60_000, key=episode.key)[0] == 400 and read == [60_000]


def test_ids_of_rewards_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_MOST_REWARD_IDS", 2)
    episode = _playing(client)
    ids = ["x" * 201, "a", "b", "c", "a"]
    bodies = [{"value": 1.0, "request_id": id} for id in ids]
    found = [client.send(f"/episode/{episode.id}/reward", body, key=episode.key)[0] for body in bodies]
    assert found == [400, 200, 200, 429, 200] and episode.reward == 2.0 and episode.reward_ids == {"a", "b"}


def test_a_request_is_hashed_once(client: Client, episode: GatewayEpisode, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Any] = []
    plain = messages.digest

    def digest(content: Any) -> str:
        hashed.append(content)
        return plain(content)

    monkeypatch.setattr(messages, "digest", digest)
    path, counter = f"/episode/{episode.id}/v1/chat/completions", {"x-stainless-retry-count": "1"}
    assert client.send(path, {"messages": [user("up")]}, key=episode.key, headers=counter)[0] == 200
    assert len([each for each in hashed if each[0] == "chat"]) == 1


def test_what_a_template_drops_is_not_kept(client: Client, episode: GatewayEpisode) -> None:
    for k in range(5):
        past = {"role": "assistant", "content": "up", "reasoning_content": f"{k}" + "marker" * 5000}
        client.chat(episode, [user("up"), past, user("down")])
    assert len(episode.calls) == 5 and "marker" not in repr(episode) and episode.kept < 10_000


def test_stored_responses_hold_each_message_once(client: Client, episode: GatewayEpisode) -> None:
    previous: dict[str, str] = {}
    for k in range(6):
        body = {"input": f"message {k}", "instructions": "Say up.", "max_output_tokens": 2, **previous}
        previous = {
            "previous_response_id": client.ask(f"/episode/{episode.id}/v1/responses", body, key=episode.key)["id"]
        }
    assert all(repr(episode.stored).count(f"'message {k}'") == 1 for k in range(6))
    texts = [message.text for message in episode.conversation(previous["previous_response_id"])]
    assert texts[::2] == [f"message {k}" for k in range(6)] and "Say up." not in texts


@pytest.mark.parametrize("body", [{"prompt": [5] * 150}, {"prompt": "up " * 75}], ids=["token ids", "text"])
def test_what_is_kept_of_an_episode_is_bounded(body: dict[str, Any]) -> None:
    with gateway_client(limits=GatewayLimits(max_new_tokens=2, max_kept=10_000)) as client:
        episode = client.gateway.open()
        found = [client.send(f"/episode/{episode.id}/v1/completions", body, key=episode.key) for _ in range(3)]
        assert [status for status, _ in found] == [200, 200, 429] and b"10000 bytes" in found[-1][1]


def test_token_ids_that_calls_share_are_kept_once(client: Client, episode: GatewayEpisode) -> None:
    sizes, messages = [], [user("up " * 20)]
    for _ in range(4):
        before = episode.kept
        messages += [client.chat(episode, messages)["choices"][0]["message"], user("up")]
        sizes.append((episode.kept - before) / len(episode.calls[-1].ids))
    assert [call.link for call in episode.calls] == ["root", *["extended"] * 3]
    assert sizes[0] > 40 > sizes[-1], "bytes of a token"


def _wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_bodies_that_never_end_are_bounded_in_bytes_and_disturb_no_other_episode(
    client: Client, episode: GatewayEpisode
) -> None:
    place = urlsplit(client.url)
    head = (
        f"POST /episode/{episode.id}/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {episode.key}\r\n"
    )
    held = []
    for _ in range(12):
        connection = socket.create_connection((place.hostname or "", place.port or 0), timeout=60)
        held.append(connection)
        connection.sendall(f"{head}Content-Length: 400001\r\n\r\n".encode() + b" " * 400_000)
    expected = 12 - LIMITS.max_bytes_each // 400_000
    _wait_for(lambda: len(select.select(held, [], [], 0)[0]) >= expected)
    refused = select.select(held, [], [], 0)[0]
    assert len(refused) == expected
    assert all(connection.recv(12) == b"HTTP/1.1 429" for connection in refused)
    client.chat(client.gateway.open(), [user("up")])
    assert episode.arriving == 12 - len(refused)
    for connection in held:
        connection.close()
    _wait_for(lambda: not episode.arriving)
    client.chat(episode, [user("up")])


def test_bytes_under_way_are_bounded_in_all() -> None:
    held = BytesUnderWay(LIMITS)
    for client in ("a", "b"):
        held.add(client, LIMITS.max_bytes_each)
    with pytest.raises(Refusal, match="of your requests") as one:
        held.add("a", 1)
    with pytest.raises(Refusal, match="try again later") as all_:
        held.add("c", 2**20 + 1)
    assert (one.value.status, all_.value.status) == (429, 503)
    for client, size in (("a", LIMITS.max_bytes_each + 1), ("b", LIMITS.max_bytes_each), ("c", 2**20 + 1)):
        held.remove(client, size)
    held.add("a", LIMITS.max_bytes_each)
