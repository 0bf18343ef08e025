"""Large answers and long prompts: written, hashed and logged off the event loop, and repeated within the limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gateway_clients import Client, gateway_client, user

from turngym.agents.models.completion import Completion
from turngym.trainers.integrations.gateway import GatewayLimits
from turngym.trainers.integrations.gateway.dialects.base import token_logprobs

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

    monkeypatch.setattr("turngym.trainers.integrations.gateway.dialects.chat.token_logprobs", slow)
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
