"""Requests that would break a batch: they fail alone, and token ids never reach the embedding unchecked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gateway_clients import Client, gateway_client, user
from small import small_model

from turngym.agents.gateway import GatewayEpisode
from turngym.agents.models.loading import TokenizerOnly, vocabulary_size

IDS: list[Any] = [[324], [5, 2**31], [2**32 + 1], [2**62], [-1], [5, -(2**62)], [[324]], [True, 5], [5.5], [[5], [6]]]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with gateway_client() as found:
        yield found


def send_together(client: Client, calls: Sequence[tuple[GatewayEpisode, str, Any]]) -> list[tuple[int, bytes]]:
    """Send requests that share the sampler's next batch, and return the answers."""
    with ThreadPoolExecutor(len(calls)) as threads:
        with client.gateway.engine.paused():
            sent = [
                threads.submit(client.send, f"/episode/{each.id}/v1/{path}", body, each.key)
                for each, path, body in calls
            ]
            deadline = time.monotonic() + 60
            while not all(each.done() or each.running() for each in sent) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.1)
        return [each.result() for each in sent]


@pytest.mark.parametrize("ids", IDS, ids=repr)
def test_token_ids_outside_the_vocabulary_are_refused_and_disturb_nobody(client: Client, ids: Any) -> None:
    assert client.gateway.words == vocabulary_size(small_model()) == 324
    attacker, others = client.gateway.open(), [client.gateway.open() for _ in range(2)]
    bad = {"prompt": ids, "max_tokens": 3}
    chats = [(each, "chat/completions", {"messages": [user("up")]}) for each in others]
    found = send_together(client, [(attacker, "completions", bad), *chats])
    assert [status for status, _ in found] == [400, 200, 200], found
    assert not attacker.calls and all(len(each.calls) == 1 for each in others)


def test_the_last_token_of_the_vocabulary_is_served(client: Client) -> None:
    episode = client.gateway.open()
    assert client.send(f"/episode/{episode.id}/v1/completions", {"prompt": [0, 323]}, episode.key)[0] == 200
    assert episode.calls[0].prompt_ids == (0, 323)


def test_a_backend_without_a_network_has_the_tokenizer_s_vocabulary() -> None:
    model = small_model()
    assert vocabulary_size(TokenizerOnly(model.tokenizer, model.stop_ids)) == len(model.tokenizer)


@pytest.mark.parametrize("kind", [RuntimeError, IndexError, MemoryError])
def test_a_request_that_breaks_its_batch_fails_alone(client: Client, kind: type[Exception]) -> None:
    engine, working = client.gateway.engine, client.gateway.engine.generate
    sizes = []

    def fragile(prompts: Sequence[Sequence[int]], *settings: Any) -> Any:
        sizes.append(len(prompts))
        if any(7 in prompt for prompt in prompts):
            raise kind("a bad prompt")
        return working(prompts, *settings)

    episodes = [client.gateway.open() for _ in range(6)]
    bodies = [{"prompt": [5, 7 if k == 3 else 6], "max_tokens": 2} for k in range(6)]
    engine.generate = fragile
    try:
        found = send_together(
            client, [(each, "completions", body) for each, body in zip(episodes, bodies, strict=True)]
        )
    finally:
        engine.generate = working
    assert [status for status, _ in found] == [200, 200, 200, 500, 200, 200], sizes
    assert b"a bad prompt" in found[3][1]
    assert max(sizes) > 1, "they shared no batch"
    assert [len(each.calls) for each in episodes] == [1, 1, 1, 0, 1, 1]
