"""The agent around a server: what is asked, how failures are met, and that everything is counted."""

import base64
import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_servers import Body, Reply, agent_of, chaotic, chat_server, request

from turngym.__main__ import main
from turngym.agents.chat_client.agent import ServerAgent, backoff
from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.usage import total
from turngym.errors import ServerDown
from turngym.seeding import stream
from turngym.wrappers.actions.action_format import action_format

NO_ACTION = action_format("tag").action_of("")


def scripted(*replies: Reply) -> Any:
    """Return a function that gives one reply after another, then actions."""
    left = list(replies)
    lock = threading.Lock()

    def answer(body: Body) -> Reply:
        with lock:
            return left.pop(0) if left else Reply()

    return answer


def test_a_completion_becomes_an_action_and_its_cost_is_known() -> None:
    with chat_server(lambda body: Reply("because. <action>down</action>", usage=(2000, 500))) as server:
        agent = agent_of(server, prices={"input": 1.0, "output": 4.0})
        [decision] = agent.act([request()])
    assert (decision.action, decision.completion) == ("down", "because. <action>down</action>")
    usage = decision.usage
    assert usage is not None and usage.cost == pytest.approx(0.002 + 0.002)
    assert (usage.tokens_in, usage.tokens_out, usage.calls, usage.retries, usage.lost) == (2000, 500, 1, 0, 0)
    assert usage.latency > 0 and not usage.failures and not usage.unmetered


def test_the_request_holds_sampling_settings_messages_and_a_seed_of_its_own() -> None:
    with chat_server(lambda body: Reply()) as server:
        settings = AgentSettings(temperature=0.7, top_p=0.8, max_new_tokens=9, server={"body": {"top_k": 5}})
        agent = make_agent(f"openai:model@{server.url}", settings)
        agent.act([request()])
        agent.act([request(turn=1)])
    first, second = server.requests
    assert {key: first[key] for key in ("model", "temperature", "top_p", "max_tokens", "top_k")} == {
        "model": "model",
        "temperature": 0.7,
        "top_p": 0.8,
        "max_tokens": 9,
        "top_k": 5,
    }
    assert first["messages"] == [
        {"role": "system", "content": "Find the door.\nAnswer format: write the action as <action>...</action>."},
        {"role": "user", "content": "a wall"},
    ]
    assert first["seed"] != second["seed"]


def test_fields_that_a_server_does_not_know_can_be_left_out_or_renamed() -> None:
    with chat_server(lambda body: Reply()) as server:
        agent_of(server, seed=False, max_tokens_field="max_completion_tokens").act([request()])
    assert "seed" not in server.requests[0] and "max_tokens" not in server.requests[0]
    assert server.requests[0]["max_completion_tokens"] == 256


def play_three_turns(agent: ServerAgent) -> list[list[dict[str, Any]]]:
    for turn, observation in enumerate(["one", "two", "three"]):
        agent.act([request(turn, observation)])
    return [agent.messages(request(3, "four")), agent.messages(request(0, "new", episode=1))]


def test_a_window_shows_the_last_turns_and_forgets_with_the_episode() -> None:
    with chat_server(lambda body: Reply()) as server:
        agent = agent_of(server, {"history": 2, "instructions": False, "legal_actions": True})
        own, other = play_three_turns(agent)
        agent.forget(0)
        assert agent.messages(request(0, "one")) == agent.messages(request(0, "one", episode=7))
    text = "Earlier:\ntwo\nYour action: up\nthree\nYour action: up\n\nNow:\nfour\nLegal actions: up, down"
    assert own == [{"role": "user", "content": text}]
    assert other == [{"role": "user", "content": "new\nLegal actions: up, down"}], "another episode, another memory"


def test_a_conversation_keeps_every_message() -> None:
    with chat_server(lambda body: Reply()) as server:
        own, other = play_three_turns(agent_of(server, {"mode": "conversation"}))
    assert [message["role"] for message in own] == ["system", *["user", "assistant"] * 3, "user"]
    assert [message["content"] for message in own[1::2]] == ["one", "two", "three", "four"]
    assert {message["content"] for message in own[2::2]} == {"<action>up</action>"}
    assert len(other) == 2


def test_a_picture_goes_with_its_text() -> None:
    image_module = pytest.importorskip("PIL.Image", reason="needs the package pillow")
    picture = stream("picture").integers(0, 256, (8, 6, 3), dtype=np.uint8)
    with chat_server(lambda body: Reply()) as server:
        agent_of(server).act([request(image=picture)])
    text, image = server.requests[0]["messages"][1]["content"]
    assert text == {"type": "text", "text": "a wall"} and image["type"] == "image_url"
    kind, data = image["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    with image_module.open(io.BytesIO(base64.b64decode(data))) as found:
        assert (np.asarray(found) == picture).all()


def test_an_environment_with_pictures_is_played_with_pictures() -> None:
    with chat_server(lambda body: Reply()) as server:
        options = {"image": True, "max_turns": 2}
        result, trajectories = evaluate("turngym/Sokoban-v0", agent_of(server), episodes=3, env_kwargs=options)
    assert result.success.count == 3 and all(isinstance(t.turns[0].observation, str) for t in trajectories)
    contents = [body["messages"][1]["content"] for body in server.requests]
    assert len(contents) == sum(len(t.turns) for t in trajectories)
    shown = {content[0]["text"] for content in contents}
    assert shown == {turn.observation for t in trajectories for turn in t.turns}
    assert len({content[1]["image_url"]["url"] for content in contents}) >= 3, "each room looks another way"


def test_failures_are_retried_and_counted_by_kind() -> None:
    replies = [Reply(drop="before"), Reply(status=500), Reply(raw=b"{"), Reply(text="", usage=(4, 1))]
    with chat_server(scripted(*replies)) as server:
        agent = agent_of(server)
        [decision] = agent.act([request()])
    assert decision.action == "up" and decision.usage is not None
    assert decision.usage.failures == {"connection": 1, "http_500": 1, "malformed": 1, "empty": 1}
    assert (
        (decision.usage.calls, decision.usage.retries, decision.usage.lost) == (5, 4, 0) == (len(server.requests), 4, 0)
    )
    assert (decision.usage.tokens_in, decision.usage.tokens_out) == (10 + 4, 3 + 1), "a blank answer is paid as well"
    assert agent.problems.keys() == decision.usage.failures.keys()
    assert len({body["seed"] for body in server.requests}) == 5, "with the same seed the same blank might come back"


def test_after_the_last_retry_the_turn_is_played_with_the_empty_text() -> None:
    with chat_server(lambda body: Reply(status=503)) as server:
        [decision] = agent_of(server, retries=2).act([request()])
        assert len(server.requests) == 3
    assert (decision.completion, decision.action) == ("", NO_ACTION) and decision.usage is not None
    assert (decision.usage.calls, decision.usage.lost, decision.usage.failures) == (3, 1, {"http_503": 3})


def test_what_can_only_fail_again_is_not_retried() -> None:
    with chat_server(lambda body: Reply(status=401)) as server:
        [decision] = agent_of(server).act([request()])
        assert len(server.requests) == 1 and decision.usage is not None and decision.usage.lost == 1


def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    with chat_server(scripted(Reply(status=429, headers={"Retry-After": "0.3"}))) as server:
        agent_of(server).act([request()])
    first, second = server.times
    assert second - first >= 0.3, "without the header it would be 0.001 s"


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    with chat_server(lambda body: Reply(status=429, headers={"Retry-After": "500"})) as server:
        agent = agent_of(server, deadline=100.0)
        with pytest.raises(ServerDown, match="is reached, with 500 s to wait"):
            agent.act([request()])  # a turn that the limit forbids is not an invalid action of the model
        assert len(server.requests) == 1


def test_a_rate_limit_that_one_request_meets_holds_all_of_them_and_is_no_retry() -> None:
    """A server of one request in 0.2 s, asked for eight at once, each of which may be retried once."""
    opens, refused = [0.0], list[float]()

    def limited(body: Body) -> Reply:
        now = time.monotonic()
        with lock:
            if now >= opens[0]:
                opens[0] = now + 0.2
                return Reply()
            refused.append(now)
            left = f"{int(1000 * (opens[0] - now)) + 1}ms"
        headers = {"x-ratelimit-reset-requests": left, "x-ratelimit-reset-tokens": "6m0s"}
        return Reply(status=429, headers={**headers, "x-ratelimit-remaining-tokens": "90"})

    lock = threading.Lock()
    with chat_server(limited) as server:
        decisions = agent_of(server, retries=1, wait=0.1).act([request(episode=each) for each in range(8)])
    assert [decision.action for decision in decisions] == ["up"] * 8
    usage = total(decision.usage for decision in decisions if decision.usage)
    assert usage.lost == 0 and usage.failures == {"http_429": len(refused)} and usage.retries == len(refused)
    assert len(refused) <= 8 * 7 / 2, "each wave of waiting requests asks once"


def test_a_rate_limit_of_years_keeps_no_later_request_waiting() -> None:
    with chat_server(lambda body: Reply(status=429, headers={"Retry-After": "999999999"})) as server:
        agent = agent_of(server, deadline=0.5)
        for episode in range(2):
            with pytest.raises(ServerDown, match=r"rate limit.* is reached"):
                agent.act([request(episode=episode)])
        assert len(server.requests) == 1


def test_an_account_without_money_stops_at_once() -> None:
    raw = b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    with chat_server(lambda body: Reply(status=429, raw=raw)) as server:
        with pytest.raises(ServerDown, match="no credit left"):
            agent_of(server).act([request()])
        assert len(server.requests) == 1


def test_what_the_server_had_in_its_cache_costs_less() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 800}}
    raw = json.dumps({"choices": [{"message": {"content": "<action>up</action>"}}], "usage": usage}).encode()
    with chat_server(lambda body: Reply(raw=raw)) as server:
        agent = agent_of(server, prices={"input": 10, "output": 100, "cached": 1})
        [decision] = agent.act([request()])
    assert decision.usage is not None and decision.usage.tokens_cached == 800
    assert decision.usage.cost == agent.account.spent == pytest.approx((200 * 10 + 800 * 1 + 10 * 100) / 1e6)


def test_a_run_stops_at_its_cost_limit_keeps_its_episodes_and_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["eval", "turngym/FrozenLake-v0", "--episodes", "12", "--num-envs", "2", "--out", str(out), "--json"]
    with chat_server(lambda body: Reply("<action>right</action>", usage=(1000, 0))) as server:
        agent = ["--agent", f"openai:m@{server.url}"]
        assert main([*words, *agent, "--server", "max_cost=1"]) == 2
        assert "max_cost needs the prices of 'm'" in capsys.readouterr().err
        prices = ["--server", 'prices={"input": 1000, "output": 0}']
        assert main([*words, *agent, *prices, "--server", "max_cost=60", "--server", "concurrency=2"]) == 2
        err = capsys.readouterr().err
        assert "The cost limit of 60 USD (max_cost) is reached" in err and "--resume continues with them" in err
        asked, kept = len(server.requests), (out / "episodes.jsonl").read_text("utf8").splitlines()
        assert 60 <= asked <= 62 and 0 < len(kept) < 12
        assert main([*words, *agent, *prices, "--server", "max_cost=1000", "--resume"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] and found["prompts"].startswith("the whole conversation;")
    assert found["usage"]["cost"] == pytest.approx(found["usage"]["calls"])
    lines = (out / "episodes.jsonl").read_text("utf8").splitlines()
    assert len(lines) == 12 and set(kept) <= set(lines), "no finished episode is repeated"


def test_a_turn_ends_at_its_deadline_though_each_request_may_take_longer() -> None:
    with chat_server(lambda body: Reply(delay=30.0)) as server:
        [decision] = agent_of(server, deadline=0.3, timeout=25.0).act([request()])
    assert decision.usage is not None and decision.usage.failures == {"timeout": 1} and decision.usage.latency < 25


def test_waits_double_and_no_two_episodes_wait_alike() -> None:
    assert [backoff(k, 1.0, 0.5, 30.0) for k in range(8)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert backoff(3, 0.0, 0.5, 30.0) == 2.0, "half at least"
    with chat_server(lambda body: Reply()) as server:
        agent, twin = agent_of(server), agent_of(server)
    waits = [agent._wait((episode, 0), 0) for episode in range(20)]
    assert len(set(waits)) == 20 and all(0.0005 <= wait <= 0.001 for wait in waits)
    assert waits == [twin._wait((episode, 0), 0) for episode in range(20)], "the seed fixes them"


def test_with_a_chaotic_server_every_episode_and_every_call_is_accounted_for() -> None:
    with chat_server(chaotic) as server:
        agent = agent_of(server, retries=3, concurrency=8)
        result, trajectories = evaluate("turngym/FrozenLake-v0", agent, episodes=30, num_envs=10)
    usages = [turn.usage for trajectory in trajectories for turn in trajectory.turns]
    assert all(usage is not None for usage in usages) and len(result.episodes) == result.success.count == 30
    assert result.faults == 0 and all(t.terminated != t.truncated for t in trajectories)
    told = [usage for usage in usages if usage is not None]
    assert sum(usage.calls for usage in told) == len(server.requests)
    assert sum(usage.retries for usage in told) == len(server.requests) - len(told)
    kinds = {kind for usage in told for kind in usage.failures}
    assert kinds == {"connection", "malformed", "empty", "http_500", "http_429", "http_503"}
    failed = sum(sum(usage.failures.values()) for usage in told)
    assert failed == sum(usage.calls for usage in told) - sum(not usage.lost for usage in told)
    for trajectory in trajectories:
        for turn in trajectory.turns:
            assert turn.usage is not None
            assert bool(turn.usage.lost) == (turn.completion == "") == (turn.action == NO_ACTION)
            assert turn.action_is_valid or turn.action == NO_ACTION
    lost = sum(usage.lost for usage in told)
    assert 0 < lost < len(told) / 4, "some, else this says little"
    assert [r["status"] for r in result.episodes] == [
        "agent_error" if any(turn.usage and turn.usage.lost for turn in t.turns) else "ok" for t in trajectories
    ]
    assert sum(r["tokens_in"] for r in result.episodes) == sum(usage.tokens_in for usage in told) > 0
    json.dumps(result.episodes)


def thinking_only(field: str = "reasoning_content", reason: str = "length") -> Reply:
    """Return the answer of a server whose model wrote nothing but reasoning."""
    message = {"role": "assistant", "content": None, field: "Let me see. <action>left</action>"}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return Reply(
        raw=json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 256}}).encode()
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_of_reasoning_alone_costs_one_request_and_says_what_to_raise(field: str) -> None:
    with chat_server(lambda body: thinking_only(field)) as server:
        agent = agent_of(server)
        decisions = [agent.act([request(turn)])[0] for turn in range(3)]
    assert len(server.requests) == 3, "one request for each turn"
    assert [decision.action for decision in decisions] == [NO_ACTION] * 3, "reasoning is not an action"
    assert all(note.purpose == "reasoning" and "left" in note.text for d in decisions for note in d.notes)
    usage = decisions[0].usage
    assert usage is not None and (usage.calls, usage.lost, usage.tokens_out) == (1, 1, 256)
    assert dict(usage.failures) == {"unfinished": 1}
    assert agent.problems["unfinished"] == (
        f"the model spent all 256 tokens on reasoning (field {field}): raise max_new_tokens (--max-new-tokens), or ask "
        "for less reasoning."
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_without_a_completion_costs_one_request_and_is_explained(field: str) -> None:
    with chat_server(lambda body: thinking_only(field, "stop")) as server:
        agent = agent_of(server)
        decisions = [agent.act([request(turn)])[0] for turn in range(3)]
    assert len(server.requests) == 3, "one request for each turn"
    assert [decision.action for decision in decisions] == [NO_ACTION] * 3, "reasoning is not an action"
    assert all(note.purpose == "reasoning" and "left" in note.text for d in decisions for note in d.notes)
    assert agent.problems["empty"] == (
        f"the model ended its answer after the reasoning (field {field}), without a completion: ask for less "
        "reasoning, or, if the answer stands in that field, correct the server's reasoning parser."
    )


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_blank_completion_is_asked_for_again_twice_and_explained(text: str | None) -> None:
    """It was sent again as a broken connection is, six times a turn, and nothing said why."""
    with chat_server(lambda body: Reply(text=text)) as server:
        agent = agent_of(server)
        [decision] = agent.act([request()])
    assert len(server.requests) == 3 and decision.action == NO_ACTION and decision.usage is not None
    assert decision.usage.failures == {"empty": 3} and decision.usage.is_unanswered
    assert agent.problems["empty"] == (
        "the completion is blank (finish_reason 'stop') and there is no reasoning: look whether the server's chat "
        "template and stop sequences fit the model."
    )


def test_a_filtered_answer_is_not_asked_for_again() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "content_filter"}
    with chat_server(lambda body: Reply(raw=json.dumps({"choices": [choice]}).encode())) as server:
        [decision] = agent_of(server).act([request()])
    assert len(server.requests) == 1 and decision.action == NO_ACTION


@pytest.mark.parametrize("style", ["plain", "react"])
def test_reasoning_beside_an_answer_is_kept_apart(style: str) -> None:
    message = {"content": "<action>up</action>", "reasoning": "Perhaps <action>down</action>?"}
    with chat_server(lambda body: Reply(raw=json.dumps({"choices": [{"message": message}]}).encode())) as server:
        agent = make_agent(f"openai:model@{server.url}", AgentSettings(style=style))
        decisions = [agent.act([request(turn)])[0] for turn in range(2)]
    assert [(decision.action, decision.completion) for decision in decisions] == [("up", "<action>up</action>")] * 2
    assert [[note.text for note in decision.notes] for decision in decisions] == [[message["reasoning"]]] * 2
    assert "Perhaps" not in json.dumps(server.requests)
