"""The gateway over HTTP: episodes, keys, exact tokens, retries, abandoned calls, rewards."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from gateway_clients import LIMITS, Client, gateway_client, user

from turngym.agents.gateway import GatewayEpisode, GatewayRules, trajectory_of
from turngym.agents.models.completion import Completion


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with gateway_client() as found:
        yield found


@pytest.fixture
def episode(client: Client) -> GatewayEpisode:
    return client.gateway.open()


def test_a_conversation_goes_on_behind_the_sampled_ids(client: Client, episode: GatewayEpisode) -> None:
    messages = [{"role": "system", "content": "Move."}, user("wall 🙂")]
    for text in ("box", "", "goal"):
        messages += [client.chat(episode, messages)["choices"][0]["message"], user(text)]
    first, *others = episode.calls
    assert first.link == "root"
    for before, call in zip(episode.calls, others, strict=False):
        assert call.link == "extended" and call.parent == before.number
        assert call.prompt_ids[: len(before.ids)] == before.ids
    assert [len(call.logprobs) for call in episode.calls] == [len(call.completion_ids) for call in episode.calls]


def scripted(client: Client, texts: list[str]) -> Any:
    """Return a backend that answers with texts, one after another."""
    model = client.gateway.renderer
    answers = [(*model.tokenizer.encode(text, add_special_tokens=False), min(model.stop_ids)) for text in texts]

    def generate(prompts: Any, *_: Any) -> list[Completion]:
        return [Completion(ids, (-0.5,) * len(ids)) for ids in (answers.pop(0) for _ in prompts)]

    return generate


@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
def test_a_client_that_strips_blanks_from_an_answer_keeps_its_ids(
    client: Client, episode: GatewayEpisode, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.gateway.engine, "generate", scripted(client, [" up \n", "\tleft  "]))
    field = "input" if path == "responses" else "messages"
    messages: list[Any] = [user("a")]
    for text in ("b", "c"):
        client.ask(f"/episode/{episode.id}/v1/{path}", {field: messages, "max_tokens": 9}, key=episode.key)
        messages += [{"role": "assistant", "content": episode.calls[-1].message.text.strip()}, user(text)]
    first, second = episode.calls
    assert first.message.text == " up \n" and second.link == "extended"
    assert second.kept == len(first.ids) and second.prompt_ids[: len(first.ids)] == first.ids


def test_an_answer_with_exactly_these_blanks_comes_before_one_with_others(
    client: Client, episode: GatewayEpisode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.gateway.engine, "generate", scripted(client, ["up ", "up", "left", "left", "down"]))
    for _ in range(2):
        client.chat(episode, [user("a")])
    for said, parent in (("up ", 0), ("up", 1), ("  up", 1)):
        client.chat(episode, [user("a"), {"role": "assistant", "content": said}, user("b")])
        assert episode.calls[-1].parent == parent
    assert client.gateway.rules.retries == "counter" and len(episode.calls) == 5


def test_an_edited_history_forks_behind_what_is_left_of_it(client: Client, episode: GatewayEpisode) -> None:
    messages: list[Any] = [user("a")]
    for text in ("b", "c"):
        messages += [client.chat(episode, messages)["choices"][0]["message"], user(text)]
    edited = [*messages[:3], {"role": "assistant", "content": "something else"}, messages[4]]
    client.chat(episode, edited)
    first, second, forked = episode.calls
    assert (second.link, forked.link, forked.parent) == ("extended", "forked", first.number)
    assert forked.prompt_ids[: len(first.ids)] == first.ids != forked.prompt_ids
    assert forked.prompt_ids[: len(second.ids)] != second.ids
    client.chat(episode, [{"role": "system", "content": "new rules"}, *messages])
    assert (episode.calls[-1].link, episode.calls[-1].kept) == ("forked", 0)


def test_an_echo_in_another_form_keeps_the_ids(client: Client, episode: GatewayEpisode) -> None:
    said = client.chat(episode, [user("a")])["choices"][0]["message"]
    half = len(said["content"]) // 2
    parts = [{"type": "text", "text": said["content"][:half]}, {"type": "text", "text": said["content"][half:]}]
    echo = {"content": parts, "role": "assistant", "tool_calls": None, "provider_specific_fields": {"x": 1}}
    client.chat(episode, [user("a"), echo, user("b")])
    assert episode.calls[1].link == "extended"


def test_choices_retries_and_seeds(client: Client, episode: GatewayEpisode) -> None:
    two = client.chat(episode, [user("a")], n=2)["choices"]
    assert len({each["message"]["content"] for each in two}) == 2 and len(episode.calls) == 2
    again = client.chat(episode, [user("a")], n=2)["choices"]
    assert [each["message"] for each in again] != [each["message"] for each in two]
    path, body = f"/episode/{episode.id}/v1/chat/completions", {"messages": [user("b")]}
    answers = [
        client.ask(path, body, key=episode.key, headers={"x-stainless-retry-count": str(count)}) for count in (0, 1)
    ]
    assert answers[0]["id"] == answers[1]["id"] and len(episode.calls) == 5
    assert episode.calls[-1].requests == 2
    seeded = [client.chat(episode, [user("c")], seed=3)["choices"][0]["message"] for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_an_answer_that_nobody_waited_for_is_logged_and_left_out(client: Client, episode: GatewayEpisode) -> None:
    place = urlsplit(client.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    body = json.dumps({"messages": [user("a" * 50)]})
    headers = {"Authorization": f"Bearer {episode.key}"}
    with client.gateway.engine.paused():
        connection.request("POST", f"/episode/{episode.id}/v1/chat/completions", body, headers)
        _until(lambda: episode.at_once == 1)
        connection.close()
        time.sleep(0.2)
    _until(lambda: len(episode.calls) == 1)
    client.chat(episode, [user("b")])
    assert [call.delivered for call in episode.calls] == [False, True]
    assert len(trajectory_of(episode).turns) == 1 and len(trajectory_of(episode, with_abandoned=True).turns) == 2


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_agents_and_rewards_reach_the_trajectory(client: Client) -> None:
    opened = client.ask("/episodes", {"group": 7, "seed": 5, "env_id": "mine", "options": {"task": 3}})
    episode = client.gateway.episodes.get(opened["id"])
    first = client.chat(episode, [user("a")])
    client.chat(episode, [user("look")], agent="scout")
    last = client.chat(episode, [user("a"), first["choices"][0]["message"], user("b")])
    where = f"/episode/{episode.id}"
    client.ask(f"{where}/reward", {"value": 0.25, "call": first["id"], "request_id": "1"})
    assert client.ask(f"{where}/reward", {"value": 0.25, "call": first["id"], "request_id": "1"})["repeated"]
    client.ask(f"{where}/reward", {"value": 0.5, "turn": 1})
    client.ask(f"{where}/reward", {"value": 1})
    client.ask(f"{where}/finish", {"success": 1, "score": 0.5})
    status, content = client.send(f"{where}/v1/chat/completions", {"messages": [user("a")]}, key=episode.key)
    assert status == 409 and b"has ended" in content
    played = trajectory_of(episode)
    assert [turn.reward for turn in played.turns] == [0.25, 0.5, 1.0]
    assert [turn.agent for turn in played.turns] == ["player_0", "scout", "player_0"]
    assert (played.spec.group, played.spec.seed, played.env_id) == (7, 5, "mine")
    assert played.terminated and played.success == 1 and played.score == 0.5
    assert played.turns[2].columns["call"] == last["id"] and played.turns[2].columns["parent"] == 0
    assert client.ask(f"{where}/trajectory")["turns"][0]["completion_ids"] == list(episode.calls[0].completion_ids)


def test_the_report_says_what_became_of_the_tokens(client: Client, episode: GatewayEpisode) -> None:
    said = client.chat(episode, [user("a")])["choices"][0]["message"]
    client.chat(episode, [user("a"), said, user("b")])
    client.chat(episode, [user("a"), {"role": "assistant", "content": "no"}, user("b")])
    report = client.gateway.report([episode])
    assert (report["calls/root"], report["calls/extended"], report["calls/forked"]) == (1, 1, 1)
    assert report["tokens/kept"] == len(episode.calls[0].ids)
    assert report["tokens/reencoded"] == len(episode.calls[2].prompt_ids)
    assert report["share/kept"] + report["share/appended"] + report["share/reencoded"] == pytest.approx(1)


def test_a_dead_agent_ends_its_episode() -> None:
    for timeout in ("truncated", "fault"):
        with gateway_client(rules=GatewayRules(timeout=timeout)) as client:
            episode = client.gateway.open()
            client.chat(episode, [user("a")])
            assert client.gateway.end_idle() == []
            episode.last_use -= LIMITS.idle_seconds + 1
            assert client.gateway.end_idle() == [episode]
            played = trajectory_of(episode)
            assert (played.truncated, bool(played.fault)) == (timeout == "truncated", timeout == "fault")
