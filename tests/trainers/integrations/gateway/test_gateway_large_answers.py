"""Large answers and long prompts: written, hashed and logged off the event loop, and repeated within the limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gateway_clients import Client, gateway_client, user

from turngym.agents.gateway import GatewayLimits, service
from turngym.agents.gateway.bounds import RequestBounds
from turngym.agents.gateway.calls import Records
from turngym.agents.gateway.conversations import messages
from turngym.agents.gateway.dialects.base import token_logprobs
from turngym.agents.models.completion import Completion

RETRY = {"x-stainless-retry-count": "1"}
LIMITS = GatewayLimits(max_new_tokens=32, chunk=32, max_at_once=24)


def sevens(prompts: Any, uniforms: Sequence[Any], sampling: Any) -> list[Completion]:
    return [Completion((7,) * len(each), (-0.5,) * len(each)) for each in uniforms]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with gateway_client(limits=LIMITS) as found:
        found.gateway.engine.generate = sevens
        yield found


@pytest.mark.parametrize("stream", [False, True])
def test_others_are_answered_while_a_large_answer_is_written(
    client: Client, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode, other = client.gateway.open(), client.gateway.open()
    path = f"/episode/{episode.id}/v1/chat/completions"
    body = {"messages": [user("up")], "n": 16, "logprobs": True, "stream": stream}
    first = client.send(path, body, episode.key)
    assert first[0] == 200 and len(first[1]) > 50_000
    began, go_on = threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        began.set()
        assert go_on.wait(60)
        return token_logprobs(*given)

    monkeypatch.setattr("turngym.agents.gateway.dialects.chat.token_logprobs", slow)
    with ThreadPoolExecutor(1) as threads:
        again = threads.submit(client.send, path, body, episode.key, "", RETRY)
        try:
            assert began.wait(60)
            assert client.ask("/health") == {"status": "healthy"}
            client.chat(other, [user("up")])
            status, content = client.send(path, body, episode.key, headers=RETRY)
            assert status == 429 and b"24 answers under way" in content, "16 are being sent again"
        finally:
            go_on.set()
        assert again.result()[0] == 200
    assert len(episode.calls) == 16, "a retry samples nothing"
    if not stream:
        assert json.loads(again.result()[1])["choices"] == json.loads(first[1])["choices"]


def test_a_long_prompt_is_hashed_once_and_off_the_event_loop(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def digest(content: Any) -> str:
        if content == [5] * 40_000:
            hashed.append(threading.current_thread().name)
        return messages.digest(content)

    monkeypatch.setattr(service, "digest", digest)
    monkeypatch.setattr(client.gateway, "context", 50_000)
    monkeypatch.setattr(client.gateway, "bounds", RequestBounds(50_000, LIMITS))
    episode = client.gateway.open()
    body = {"prompt": [5] * 40_000, "n": 16, "max_tokens": 1}
    client.ask(f"/episode/{episode.id}/v1/completions", body, key=episode.key)
    assert len(hashed) == 1 and hashed[0].startswith("turngym-gateway-work"), hashed
    assert len(episode.asked) == 16, "each choice is sampled with other random numbers"


def lines_of(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf8").splitlines()]


def test_the_log_is_written_off_the_event_loop_in_order_and_before_the_client_has_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, plain = threading.Event(), threading.Event(), json.dumps

    def slow(content: Any, **how: Any) -> str:
        if isinstance(content, dict) and "completion_ids" in content:
            began.set()
            assert go_on.wait(60)
        return plain(content, **how)

    with gateway_client(limits=LIMITS, records=Records(tmp_path / "log")) as client, ThreadPoolExecutor(2) as threads:
        client.gateway.engine.generate = sevens
        monkeypatch.setattr("turngym.agents.gateway.calls.json.dumps", slow)
        episode = client.gateway.open()
        answers = [threads.submit(client.chat, episode, [user("up")], n=n) for n in (3, 2)]
        try:
            assert began.wait(60)
            assert client.ask("/health") == {"status": "healthy"}
            assert not any(each.done() for each in answers)
        finally:
            go_on.set()
        found = [choice for each in answers for choice in each.result()["choices"]]
        lines = lines_of(tmp_path / "log", episode.id)
    assert len(found) == 5 and [line["number"] for line in lines] == list(range(5))
    assert [line["completion_ids"] for line in lines] == [[7] * 32] * 5 and not lines[0]["delivered"]
    assert lines[0]["message"]["role"] == "assistant" and lines[0]["columns"] == {"tool_calls": 0.0}


def test_answers_that_wait_to_be_logged_are_written_when_the_gateway_ends(client: Client, tmp_path: Path) -> None:
    episode, records = client.gateway.open(), Records(tmp_path / "log")
    client.chat(episode, [user("up")])
    for _ in range(50):
        records.write(episode, episode.calls)
    records.flush()
    assert len(lines_of(tmp_path / "log", episode.id)) == 50
    for _ in range(50):
        records.write(episode, episode.calls)
    records.close()
    assert len(lines_of(tmp_path / "log", episode.id)) == 100
