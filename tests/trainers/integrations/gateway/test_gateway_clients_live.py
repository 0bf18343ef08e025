"""The packages openai and anthropic against a gateway, and the example program in training."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_clients import Client, gateway_client, user

from turngym.__main__ import main
from turngym.agents.gateway import GatewayEpisode

openai: Any = pytest.importorskip("openai")
pytestmark = pytest.mark.integration
EXAMPLE = Path(__file__).parents[4] / "trainers" / "integrations" / "examples" / "openai_agent.py"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with gateway_client() as found:
        yield found


@pytest.fixture
def episode(client: Client) -> GatewayEpisode:
    return client.gateway.open()


def test_openai_chats_streams_and_goes_on(client: Client, episode: GatewayEpisode) -> None:
    sdk = openai.OpenAI(base_url=f"{client.url}/episode/{episode.id}/v1", api_key=episode.key)
    assert [model.id for model in sdk.models.list()] == ["turngym"]
    first = sdk.chat.completions.create(model="turngym", messages=[user("a")], n=2, logprobs=True)
    call = episode.calls[0]
    assert [each.logprob for each in first.choices[0].logprobs.content] == pytest.approx(call.logprobs)
    assert first.usage.completion_tokens == sum(len(each.completion_ids) for each in episode.calls)
    messages = [user("a"), first.choices[1].message, user("b")]
    chunks = list(sdk.chat.completions.create(model="turngym", messages=messages, stream=True))
    text = "".join(each.choices[0].delta.content or "" for each in chunks)
    assert text == episode.calls[2].message.text and episode.calls[2].parent == 1
    with pytest.raises(openai.BadRequestError, match="at least one message"):
        sdk.chat.completions.create(model="turngym", messages=[])
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="wrong").models.list()


def test_openai_responses_follow_one_another(client: Client, episode: GatewayEpisode) -> None:
    sdk = openai.OpenAI(base_url=f"{client.url}/episode/{episode.id}/v1", api_key=episode.key)
    first = sdk.responses.create(model="turngym", input="a", instructions="be short")
    assert first.output_text == episode.calls[0].message.text
    events = list(
        sdk.responses.create(
            model="turngym", input="b", instructions="be short", previous_response_id=first.id, stream=True
        )
    )
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    assert events[-1].response.output_text == episode.calls[1].message.text
    assert episode.calls[1].link == "extended"


def test_anthropic_chats_and_streams(client: Client, episode: GatewayEpisode) -> None:
    anthropic: Any = pytest.importorskip("anthropic")
    sdk = anthropic.Anthropic(base_url=f"{client.url}/episode/{episode.id}", api_key=episode.key)
    options: dict[str, Any] = {"model": "turngym", "max_tokens": 9, "system": "Move."}
    first = sdk.messages.create(messages=[user("a")], **options)
    history = [user("a"), {"role": "assistant", "content": first.content}, user("b")]
    with sdk.messages.stream(messages=history, **options) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == episode.calls[1].message.text and episode.calls[1].link == "extended"
    assert final.usage.output_tokens == len(episode.calls[1].completion_ids)
    with pytest.raises(anthropic.BadRequestError):
        sdk.messages.create(messages=[{"role": "owner", "content": "x"}], **options)


def test_the_example_is_trained(tmp_path: Path) -> None:
    words = ["train", "--env", "turngym/NumberLine-v0", "--env-options", "max_turns=4", "highest=3"]
    words += ["--agent.command", f"{sys.executable} {EXAMPLE}", "--iterations", "1", "--no-control"]
    words += ["--warmup.demonstrations", "20", "--warmup.epochs", "2", "--max-seconds", "0"]
    words += ["--rollout.groups", "1", "--rollout.group-size", "2", "--rollout.max-new-tokens", "6"]
    words += ["--evaluation.episodes", "2", "--evaluation.every", "0", "--run-dir", str(tmp_path / "run")]
    assert main(words) == 0
    [line] = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["rollout/faults"] == 0 and record["rollout/gateway_share_kept"] > 0
