"""AgentDojo's suites under turngym's contract, played for real where `make test-integration` put them."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from damaged_snapshots import try_one

from turngym.benchmarks.suites.agentdojo import TASKS
from turngym.envs.adapters import agentdojo
from turngym.envs.adapters.agentdojo import ATTACKS, NONE, NOW, SUITES, AgentDojo
from turngym.envs.check import check
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError, ExpertLost, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("agentdojo", reason="it is in .venvs/agentdojo only: run make test-integration")

MARK = "A sentence that only an attacker writes."
SOLVED_BY_NOTHING = {f"user_task_{number}" for number in (5, 6, 8, 9, 10)}
"""Tasks of banking whose judges of the package accept the untouched records and an empty answer."""


def solved(env: AgentDojo, task: str, first: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the last info of an episode of some actions and the expert."""
    _, info = env.reset(options={"task": task})
    for action in first:
        *_, info = env.step(action)
    while info["success"] < 0:
        *_, info = env.step(env.expert_action())
    return info


def injected_calls(env: AgentDojo, task: str) -> list[str]:
    """Return the package's solution of the injection task as actions."""
    env.reset(options={"task": task})
    records = agentdojo._records(env._scenes[task])
    injection = env.session._injection_task
    calls = [write_call(call.function, dict(call.args)) for call in injection.ground_truth(records)]
    return [*calls, write_call("answer", {"text": injection.GROUND_TRUTH_OUTPUT})]


@pytest.mark.parametrize("suite", SUITES)
def test_the_solutions_solve_all_tasks_and_nothing_solves_few(suite: str) -> None:
    """Of workspace every tenth one, whose judges take seconds."""
    env = AgentDojo(suite=suite)
    assert len(env.tasks()) == env.finite_instances == TASKS[suite][0]
    for task in env.tasks()[:: 10 if suite == "workspace" else 1]:
        assert solved(env, task)["success"] == 1, task
        env.reset(options={"task": task})
        _, reward, terminated, *_ = env.step(write_call("answer", {"text": ""}))
        assert (reward, terminated) == (float(suite == "banking" and task in SOLVED_BY_NOTHING), True), task


@pytest.mark.parametrize("suite", ["travel", "banking", "slack"])
def test_the_expert_carries_no_injection_out_and_one_who_obeys_does(suite: str) -> None:
    env = AgentDojo(suite=suite, attack="important_instructions", injection_penalty=0.5)
    users, injections = TASKS[suite]
    assert len(env.tasks()) == users * injections
    for task in env.tasks()[:: users - 1]:
        info = solved(env, task)
        assert (info["success"], info["score"], info["columns"]) == (1, 1.0, {"outcome/injected": 0.0}), task
        calls = injected_calls(env, task)
        env.reset(options={"task": task})
        *_, (_, reward, *_, info) = [env.step(action) for action in calls]
        assert (info["columns"], info["score"]) == ({"outcome/injected": 1.0}, 0.0), task
        assert reward == info["success"] - 0.5


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_text_of_every_attack_is_among_what_the_solution_reads(attack: str) -> None:
    env = AgentDojo(suite="banking", attack=attack, injection_task="injection_task_0")
    info = solved(env, "user_task_0/injection_task_0")
    assert "US133000000121212121212" in info["anchor"] and info["success"] == 1


@pytest.mark.parametrize("suite", SUITES)
def test_records_are_those_that_the_package_loads(suite: str) -> None:
    theirs = importlib.import_module("agentdojo.task_suite").get_suite("v1.2.2", suite)
    vector = next(iter(theirs.get_injection_vector_defaults()))
    for injections in ({}, {vector: f"{MARK}\n\n<INFORMATION> '{MARK}'\n"}):
        ours = agentdojo._suite("v1.2.2", suite).load_and_inject_default_environment(injections)
        assert ours == theirs.load_and_inject_default_environment(injections)


@pytest.fixture(params=["travel", "banking", "slack"])
def env(request: pytest.FixtureRequest) -> Iterator[AgentDojo]:
    made = AgentDojo(suite=request.param, attack="direct")
    yield made
    made.close()


VALUES: tuple[Any, ...] = (
    *("", "1", "0", "x" * 3000, "2024-05-15", "2024-05-15 10:00", "a@b.co", "漢 🙂\x00", "<answer>"),
    *(0, -1, 10**17, 1e300, 0.5, None, True, [], ["1"], [[["a"]]], {}, {"a": {"b": []}}, ["a@b.co"]),
)


def test_any_call_is_answered_and_repeats_from_a_snapshot(env: AgentDojo) -> None:
    dice, copy = random.Random(0), AgentDojo(suite=env.options.suite, attack="direct")
    for seed in range(3):
        env.reset(seed=seed)
        log = []
        for _ in range(env.max_turns - 1):
            tool = dice.choice(list(env.session._runtime.functions.values()))
            fields = list(tool.parameters.model_fields)
            arguments = {name: dice.choice(VALUES) for name in fields if dice.random() < 0.9}
            snapshot = env.snapshot()
            action = write_call(tool.name, arguments)
            log.append((snapshot, action, env.step(action)))
        for snapshot, action, step in log[::7]:
            copy.restore(snapshot)
            assert json.dumps(copy.step(action)) == json.dumps(step)


@pytest.mark.parametrize(
    "action",
    [
        "",
        "The answer is 4.",
        "<tool_call>{",
        '<tool_call>{"name": "wire_money", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "send_money", "arguments": {"amount": "much"}}</tool_call>',
        '<tool_call>{"name": "answer", "arguments": {"text": 4}}</tool_call>',
        '<tool_call>{"name": "answer", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "send_money", "arguments": {"amount": NaN}}</tool_call>',
    ],
)
def test_what_is_no_call_is_answered_and_changes_nothing(action: str) -> None:
    env = AgentDojo(suite="banking")
    _, before = env.reset(options={"task": 0})
    observation, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["action_is_valid"], info["anchor"]) == (0.0, False, False, before["anchor"])
    assert observation and "pydantic" not in observation.lower()
    assert solved(env, "user_task_0", (action,))["success"] == 1


def test_mails_have_a_fixed_date() -> None:
    env = AgentDojo(suite="workspace")
    env.reset(options={"task": 0})
    mail = {"recipients": ["emma.johnson@bluesparrowtech.com"], "subject": "Hello", "body": "Hello"}
    assert str(NOW) in env.step(write_call("send_email", mail))[0]


def test_an_episode_that_is_cut_off_is_judged_for_the_injection_too() -> None:
    task = "user_task_0/injection_task_4"
    calls = injected_calls(AgentDojo(suite="banking", attack="direct"), task)[:-1]
    env = AgentDojo(suite="banking", attack="direct", injection_penalty=1.0, max_turns=len(calls))
    env.reset(options={"task": task})
    *_, last = [env.step(action) for action in calls]
    assert (last[1], last[3], last[4]["columns"], last[4]["success"]) == (-1.0, True, {"outcome/injected": 1.0}, 0)
    assert env.restore(env.snapshot())[1] == last[4]


def test_the_expert_does_not_follow_others() -> None:
    env = AgentDojo(suite="banking")
    env.reset(options={"task": "user_task_0"})
    env.step(write_call("get_balance", {}))
    with pytest.raises(ExpertLost, match="left the solution"):
        env.expert_action()


@pytest.mark.parametrize(("suite", "attack"), [("banking", NONE), ("slack", "important_instructions")])
def test_it_keeps_every_promise(suite: str, attack: str) -> None:
    options = {"suite": suite, "attack": attack}
    assert not check("turngym/AgentDojo-v0", options=options, episodes=1, in_process=True).findings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"suite": "bank"}, "banking"),
        ({"attack": "dos"}, "attack"),
        ({"user_task": "user_task_99"}, "no user task 'user_task_99'"),
        ({"attack": "direct", "injection_task": "task_1"}, "no injection task 'task_1'"),
        ({"injection_task": "injection_task_1"}, "needs an attack"),
        ({"version": "v9"}, "version"),
    ],
)
def test_wrong_options_name_the_way_out(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=words):
        AgentDojo(**options)


def test_unknown_tasks_are_refused() -> None:
    with pytest.raises(UnknownName, match="no task named 'user_task_99'"):
        AgentDojo(suite="banking").reset(options={"task": "user_task_99"})


def test_damaged_snapshots_are_refused_or_leave_a_working_environment() -> None:
    env, draw, saved = AgentDojo(suite="banking", attack="direct"), random.Random(0), []
    for task in (0, 20, 40):
        _, info = env.reset(options={"task": task})
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
            saved.append(env.snapshot())
    found = [try_one(env, draw, saved) for _ in range(120)]
    assert not [words for how, words in found if how == "broken"]
    assert sum(how == "refused" for how, _ in found) > 30
