"""Native tool calls of a model behind a server: declarations, results, several calls, mistakes."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from chat_servers import Body, Reply, chat_server
from numpy.typing import NDArray

import turngym
from turngym.agents.chat_client.client import CallFailed, ChatServer
from turngym.agents.chat_client.config import read_address
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs import Outcome, PictureEnv, ToolEnv, tool


class Door(ToolEnv, PictureEnv):
    """A door whose number must be read first."""

    instructions = "Open the door."

    def setup(self) -> None:
        self.set_frame(4, 4)

    def initial_state(self, generator: np.random.Generator) -> int:
        return int(generator.integers(1000))

    def observation(self) -> str:
        return "A closed door."

    def render_image(self) -> NDArray[np.uint8]:
        return np.full((4, 4, 3), 9, np.uint8)

    @tool
    def read(self) -> str:
        """Read the number."""
        return f"The number is {self.state}."

    @tool
    def open(self, number: int) -> Outcome[str]:
        """Open the door."""
        is_right = number == self.state
        return Outcome("Open." if is_right else "Wrong.", float(is_right), is_right, is_right)


gymnasium.register("native/Door-v0", Door, order_enforce=False, disable_env_checker=True)


def said(*calls: tuple[str, Any], text: str | None = None) -> Reply:
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made}
    return Reply(raw=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode())


def reading(body: Body) -> Reply:
    """Read the number, then open the door, as the rules ask for."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return said(("read", "{}"), text="I read it.")
    return said(("open", json.dumps({"number": int(results[0].split()[-1][:-1])})))


def played(answer: Any, prompt: Any = None, format: str = "auto", **options: Any) -> tuple[Trajectory, Sequence[Body]]:
    with chat_server(answer) as server:
        agent = make_agent(f"openai:m@{server.url}", AgentSettings(format=format, prompt=prompt or {}))
        vector = turngym.make_vec("native/Door-v0", 1, autoreset_mode="disabled", max_turns=5, **options)
        (found,) = rollout(vector, agent, [EpisodeSpec(0, 1)], schedule="continuous")
        vector.close()
        return found, [body for body in server.requests if len(body["messages"]) > 1]


def test_tools_are_declared_and_results_are_tool_messages() -> None:
    episode, requests = played(reading)
    assert episode.success == 1 and len(episode.turns) == 2
    first, second = requests
    assert [each["function"]["name"] for each in first["tools"]] == ["read", "open"]
    assert first["messages"][0]["content"] == "Open the door."  # no notation that contradicts the calls
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][2]["tool_calls"][0]["id"] == second["messages"][3]["tool_call_id"]


def test_the_picture_of_a_result_follows_its_message() -> None:
    episode, requests = played(reading, image=True)
    assert episode.success == 1
    result, picture = requests[1]["messages"][-2:]
    assert result["role"] == "tool" and isinstance(result["content"], str)
    assert picture["role"] == "user" and picture["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_several_calls_of_one_answer_are_played_and_answered_in_order() -> None:
    def answer(body: Body) -> Reply:
        results = [message for message in body["messages"] if message["role"] == "tool"]
        return said(("read", "{}"), ("open", '{"number": -1}'), ("nothing", "{}")) if not results else reading(body)

    episode, requests = played(answer, image=True)
    assert episode.success == 1 and len(episode.turns) == 4 and len(requests) == 2
    results = [message for message in requests[1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["c0", "c1", "c2"]
    assert results[1]["content"] == "Wrong." and "There is no tool 'nothing'" in results[2]["content"]


def test_mistakes_are_answered_by_the_environment() -> None:
    deep = "[" * 5000
    wrong = [("open", '{"number": "x"}'), ("open", "{"), ("open", deep), ("open", None), ("fly", {"a": 1})]
    episode, requests = played(lambda body: said(wrong[(len(body["messages"]) - 2) // 2 % 5]))
    assert not episode.fault and episode.truncated and len(episode.turns) == 5
    assert not any(turn.action_is_valid for turn in episode.turns)
    for message in (message for body in requests for message in body["messages"]):
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_server_that_rejects_tools_is_asked_for_written_calls() -> None:
    error = (
        b'{"error": {"message": "\\"auto\\" tool choice requires --enable-auto-tool-choice to be set", "code": 400}}'
    )

    def answer(body: Body) -> Reply:
        if "tools" in body:
            return Reply(raw=error, status=400)
        assert "<tool_call>" in body["messages"][0]["content"]  # the rules now have the notation
        read = [found for message in body["messages"] if "The number is" in (found := str(message["content"]))]
        call = {"name": "open", "arguments": {"number": int(read[-1].split()[-1][:-1])}} if read else {"name": "read"}
        return Reply(f"<tool_call>{json.dumps(call)}</tool_call>")

    episode, requests = played(answer)
    assert episode.success == 1 and all(turn.action_is_valid for turn in episode.turns)
    assert ["tools" in body for body in requests] == [True, False, False]  # the server is asked with tools once
    first, second = (turn.usage for turn in episode.turns)
    assert first and second
    assert first.failures == {"tools": 1} and first.lost == 0 and first.retries == 1 and not second.failures


@pytest.mark.parametrize("status, text", [(400, "the temperature must be a number"), (429, "too many tool calls")])
def test_other_rejections_of_a_request_with_tools_stay_what_they_are(status: int, text: str) -> None:
    with chat_server(lambda body: Reply(raw=text.encode(), status=status)) as server:
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "tools": []}
        with pytest.raises(CallFailed) as failure:
            ChatServer(read_address(server.url)).ask(asked, 10)
    assert failure.value.kind == f"http_{status}"


def test_a_text_format_or_a_window_asks_for_the_notation_or_has_no_tool_messages() -> None:
    calls = '<tool_call>{"name": "read", "arguments": {}}</tool_call>'
    episode, requests = played(lambda body: Reply(calls), format="plain")
    assert "tools" not in requests[0] and "<tool_call>" in requests[0]["messages"][0]["content"]
    assert all(turn.action_is_valid for turn in episode.turns)
    episode, requests = played(lambda body: said(("read", "{}")), {"mode": "window", "history": 2})
    assert {message["role"] for body in requests for message in body["messages"]} == {"system", "user"}
    assert all(turn.action_is_valid for turn in episode.turns)
