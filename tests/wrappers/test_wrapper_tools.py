"""The wrapper tools: calls, mistakes, costs, limits, time, snapshots, coroutines."""

import json
from typing import Any

import gymnasium
import pytest
import tool_examples

import turngym
from turngym.envs.check import check
from turngym.envs.tools.tool_schema import Tool
from turngym.errors import ConfigError
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.tool_use.tools import Tools

GAME = "turngym/GuessTheNumber-v0"
ALL = ["add", "join", "fail", "say"]
NAMES = [f"tool_examples:{name}" for name in ALL]


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def made(**options: Any) -> Tools:
    env = Tools(gymnasium.make(GAME), **{"tools": NAMES, **options})
    env.reset(seed=0)
    return env


def test_schemas_stand_in_the_instructions_and_nothing_without_tools() -> None:
    env = made()
    *lines, last = env.instructions.splitlines()
    assert [json.loads(line)["name"] for line in lines[-len(ALL) :]] == ALL
    assert last == "Answer format: write the action as <action>...</action>."
    assert Tools(gymnasium.make(GAME)).instructions == gymnasium.make(GAME).get_wrapper_attr("instructions")


def test_calls_and_actions_are_found_in_whole_answers() -> None:
    """A model that follows the rules to the letter writes both as they say; neither needs another format."""
    env, plain = made(), gymnasium.make(GAME)
    plain.reset(seed=0)
    assert env.get_wrapper_attr("finds_action") and not Tools(gymnasium.make(GAME)).finds_action
    assert env.step(f"I add. {call('add', a=2, b=3)}")[0] == "<tool_response>\n5\n</tool_response>"
    assert env.step("So <action>50</action>")[:4] == plain.step("50")[:4]


def test_a_call_is_answered_and_the_environment_does_not_move() -> None:
    env, plain = made(), gymnasium.make(GAME)
    plain.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(f"I add. {call('add', a=2, b=3)}")
    assert observation == "<tool_response>\n5\n</tool_response>"
    assert (reward, terminated, truncated, info["action_is_valid"], info["success"]) == (0.0, False, False, True, -1)
    assert env.step("50")[:4] == plain.step("50")[:4]
    assert env.turn == 2 and env.num_calls == 1 and env.max_turns == 26


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("<tool_call></tool_call>", "no JSON object"),
        ("<tool_call>add(1, 2)</tool_call>", "no JSON object"),
        ('<tool_call>{"name": 3}</tool_call>', "no JSON object"),
        ('<tool_call>{"name": "add", "arguments": [1]}</tool_call>', "arguments, an object"),
        ('<tool_call>{"name": "add", "arguments": {}, "more": 1}</tool_call>', "exactly name and arguments"),
        ('<tool_call>{"name": "ad", "arguments": {}}</tool_call>', "Did you mean 'add'?"),
        (call("add", a="x"), "a must be integer"),
        (call("add"), "a missing"),
        (call("join", words=["a"], sign="*"), "must be one of"),
        ("<tool_call>" + '{"a": ' * 20_000 + "</tool_call>", "no JSON object"),
        ("<tool_call>" + "x" * 1_000_000 + "</tool_call>", "no JSON object"),
        ("<tool_call>\ud800</tool_call>", "no JSON object"),
    ],
)
def test_malformed_calls_are_told_and_cost(action: str, told: str) -> None:
    env = made(cost=0.1, error_cost=0.2)
    observation, reward, _, _, info = env.step(action)
    assert observation.startswith("<tool_response>\nError: ") and told in observation
    assert reward == pytest.approx(-0.3) and not info["action_is_valid"] and env.num_calls == 1


def test_a_call_inside_of_thinking_is_no_call() -> None:
    env = made()
    env.step(f"<think>{call('add', a=2, b=3)}</think> 50")
    env.step(f"<think>{call('add', a=2, b=3)}")
    assert env.num_calls == 0
    assert env.step(f"<think>{call('say')}</think>{call('add', a=2, b=3)}")[0] == "<tool_response>\n5\n</tool_response>"


def test_a_call_that_is_not_closed_is_answered() -> None:
    env = made(error_cost=0.5)
    observation, reward, *_ = env.step(call("add", a=2, b=3).removesuffix("</tool_call>"))
    assert "not closed" in observation and reward == -0.5 and env.num_calls == 1
    unclosed = '<tool_call>{"name": "say", "arguments": {"text": "<think>a</think>"}}'
    assert env._call_in(f"<think>hm</think>{unclosed}") == unclosed


def test_what_a_tool_raises_is_an_observation() -> None:
    observation, reward, _, _, info = made(error_cost=0.5).step(call("fail", reason="no way"))
    assert "Error: ValueError: no way" in observation and reward == -0.5 and info["action_is_valid"]


def test_results_are_cut_and_harmless() -> None:
    env = made(output=100)
    assert "<action>" not in env.step(call("say", text="<action>50</action></tool_response>"))[0]
    observation = env.step(call("say", text="x" * 90_000))[0]
    assert len(observation) < 250 and "left out" in observation
    assert '["a"' not in env.step(call("join", words=["a", "b"], sign="+"))[0]


def test_calls_beyond_the_limit_are_actions_so_every_episode_ends() -> None:
    env, turns, truncated = made(max_calls=3), 0, False
    while not truncated:
        *_, truncated, info = env.step(call("add", a=1))
        turns += 1
    assert turns == env.max_turns == env.turn == 13 and not info["action_is_valid"]


def test_each_tool_can_have_a_cost_of_its_own() -> None:
    dear = Tool("dear", "Cost much.", {"type": "object", "properties": {}}, lambda: "x", cost=2.0)
    assert made(tools=[dear], cost=0.5).step(call("dear"))[1] == -2.5


@pytest.mark.parametrize("name", ["hang", "sleep_on"])
def test_a_tool_that_does_not_come_back_is_left_behind(name: str) -> None:
    env = made(tools=[f"tool_examples:{name}", "tool_examples:add"], timeout=0.2)
    assert "did not answer within 0.2 seconds" in env.step(call(name))[0]
    assert "\n3\n" in env.step(call("add", a=2))[0]


def test_what_was_told_belongs_to_the_anchor_and_to_snapshots() -> None:
    env = made()
    first = env.step("50")[4]["anchor"]
    after = env.step(call("add", a=40))
    assert after[4]["anchor"].startswith(first) and "41" in after[4]["anchor"] != first
    saved, twin = env.snapshot(), Tools(gymnasium.make(GAME), tools=NAMES)
    assert twin.restore(saved) == (after[0], after[4])
    assert twin.step("25") == env.step("25") and twin.step(call("add", a=1)) == env.step(call("add", a=1))
    assert env.reset(seed=0)[1]["anchor"] == made().reset(seed=0)[1]["anchor"]


def test_the_check_finds_nothing_with_tools_on() -> None:
    assert not check(lambda **kw: Tools(gymnasium.make(GAME, **kw), tools=NAMES), episodes=2, in_process=True).failed


def test_it_goes_with_other_wrappers_and_into_vectors() -> None:
    env = wrap(gymnasium.make(GAME), "parse_action", Wrapping("tools", {"tools": NAMES}), "history:k=2")
    env.reset(seed=0)
    assert "\n5\n" in env.step(call("add", a=2, b=3))[0]
    env.step("<action>50</action>")
    wrapping = [Wrapping("tools", {"tools": NAMES})]
    for backend in ("sync", "thread"):
        with turngym.make_vec(GAME, 2, backend=backend, wrappers=wrapping) as vector:
            vector.reset(seed=[0, 1])
            observations, rewards, *_ = vector.step([call("add", a=1), "50"])
            assert "\n2\n" in observations[0] and observations[1] in ("higher", "lower") and list(rewards) == [0, 0]


def test_coroutines_of_all_slots_wait_together_on_one_loop() -> None:
    """Each comes back only when all four are there: one after the other they would run out of time."""
    tool_examples._here.clear()
    wrapping = [Wrapping("tools", {"tools": ["tool_examples:wait_for_all"], "timeout": 60.0})]
    with turngym.make_vec(GAME, 4, backend="asyncio", wrappers=wrapping) as vector:
        vector.reset(seed=[0, 1, 2, 3])
        observations, *_ = vector.step([call("wait_for_all", number=slot) for slot in range(4)])
        assert ["all 4" in text for text in observations] == [True] * 4
        assert vector.step(["50"] * 4)[0][0] in ("higher", "lower", "correct")


@pytest.mark.parametrize(
    "options",
    [{"max_calls": 0}, {"cost": -1}, {"timeout": 0}, {"output": 1}, {"tools": "x"}, {"tools": [NAMES[0], NAMES[0]]}],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Tools(gymnasium.make(GAME), **options)
