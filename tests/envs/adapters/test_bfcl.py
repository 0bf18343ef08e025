"""BFCL's multi-turn questions under turngym's contract, played for real where `make test-integration` put them."""

from __future__ import annotations

import importlib
import json
import random
from typing import Any

import pytest
from damaged_snapshots import try_one

from turngym.envs.adapters.bfcl import BFCL, CATEGORIES, REPLY
from turngym.envs.check import check
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError, ExpertLost, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("bfcl_eval", reason="it is in .venvs/bfcl only: run make test-integration")

UNSOLVABLE = {"multi_turn_miss_func_49"}
DONE = write_call(REPLY, {})
VALUES: tuple[Any, ...] = (
    *("", "1", "file.txt", "x" * 3000, "..", "/", "2024-05-15", "\u6f22 \U0001f642\x00", "<answer>", "__class__"),
    *(0, -1, 10**17, 1e300, 0.5, None, True, [], ["1"], [1, "a"], {}, {"a": {"b": []}}),
)


def played(env: BFCL, task: str, calls: list[list[tuple[str, dict[str, Any]]]]) -> bool:
    """Return whether an episode of these calls succeeds, a list for each request."""
    _, info = env.reset(options={"task": task})
    for turn in calls:
        for action in (*(write_call(*each) for each in turn), DONE):
            if info["success"] < 0:
                *_, info = env.step(action)
    return bool(info["success"] == 1)


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_reference_calls_solve_all_questions_and_nothing_solves_none(category: str) -> None:
    env = BFCL(category=category, reward="dense")
    assert len(env.tasks()) == env.finite_instances == 200
    for task in env.tasks():
        _, info = env.reset(options={"task": task})
        rewards = []
        while info["success"] < 0:
            _, reward, *_, info = env.step(env.expert_action())
            rewards.append(reward)
        assert info["success"] == (task not in UNSOLVABLE), task
        assert sum(rewards) == pytest.approx(info["progress"])
        _, info = env.reset(options={"task": task})
        while info["success"] < 0:
            *_, info = env.step(DONE)
        assert info["success"] == 0, task


def varied(dice: random.Random, calls: list[Any]) -> list[Any]:
    """Return calls with one left out, repeated, or in another place."""
    found = [list(turn) for turn in calls]
    turn = dice.choice([turn for turn in found if turn])
    place = dice.randrange(len(turn))
    call = turn[place]
    how = dice.choice(["left out", "repeated", "moved", "same"])
    if how in ("left out", "moved"):
        del turn[place]
    if how == "moved":
        turn.append(call)
    if how == "repeated":
        turn.insert(place, call)
    return found


def as_python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


@pytest.mark.parametrize("category", CATEGORIES)
def test_verdicts_are_those_of_the_package(category: str) -> None:
    """Whose own checker evaluates the same calls as Python; it is given nothing but varied reference calls."""
    checker = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    env, dice, verdicts = BFCL(category=category), random.Random(0), set()
    for task in env.tasks()[::4]:
        if task in UNSOLVABLE:
            continue
        question = env._questions[task]
        env.reset(options={"task": task})
        for number in range(2):
            calls = varied(dice, env._plan)
            texts = [
                [f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})" for name, given in turn]
                for turn in calls
            ]
            steps = [[[text] for text in turn] for turn in texts]
            name = f"turngym{number}"
            theirs = checker.multi_turn_checker(steps, question["ground_truth"], question, category, name)["valid"]
            assert played(env, task, calls) == theirs, (task, steps)
            verdicts.add(theirs)
    assert verdicts == {True, False}


@pytest.mark.parametrize("category", CATEGORIES)
def test_any_call_is_answered_and_repeats_from_a_snapshot(category: str) -> None:
    dice, env, copy = random.Random(0), BFCL(category=category), BFCL(category=category)
    for seed in range(12):
        _, info = env.reset(seed=seed)
        log = []
        while info["success"] < 0:
            tool = dice.choice(list(env._tools.values()))
            arguments = {name: dice.choice(VALUES) for name in tool.parameters["properties"] if dice.random() < 0.9}
            snapshot, action = env.snapshot(), write_call(tool.name, arguments)
            step = env.step(action)
            log.append((snapshot, action, step))
            info = step[-1]
        for snapshot, action, step in log[::7]:
            copy.restore(snapshot)
            assert json.dumps(copy.step(action)) == json.dumps(step)


@pytest.mark.parametrize(
    "action",
    [
        "",
        "cd(folder='document')",
        "<tool_call>{",
        '<tool_call>{"name": "_load_scenario", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "__class__", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "cp", "arguments": {"source": "a", "destination": "b"}}</tool_call>',
        '<tool_call>{"name": "reply", "arguments": {"text": 4}}</tool_call>',
    ],
)
def test_what_is_no_call_is_answered_and_changes_nothing(action: str) -> None:
    """``cp`` is left out of the functions of that question."""
    env = BFCL()
    _, before = env.reset(options={"task": 0})
    observation, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["action_is_valid"], info["anchor"]) == (0.0, False, False, before["anchor"])
    assert "no action" in observation and env.expert_action() == write_call("cd", {"folder": "document"})


def test_numbers_that_would_take_hours_are_refused() -> None:
    env = BFCL()
    env.reset(
        options={"task": next(task for task in env.tasks() if "MathAPI" in env._questions[task]["involved_classes"])}
    )
    assert "at most 1000" in env.step(write_call("power", {"base": 10**17, "exponent": 10**17}))[0]
    assert "at most 1000" in env.step(write_call("logarithm", {"value": 3, "base": 2, "precision": 10**17}))[0]
    assert '"result"' in env.step(write_call("power", {"base": 2, "exponent": 10}))[0]


def test_a_missing_function_comes_with_a_later_request() -> None:
    env = BFCL(category="miss_func")
    env.reset(options={"task": 0})
    assert '"sort"' not in env.instructions
    while "There are more functions now" not in (observation := env.step(env.expert_action())[0]):
        assert "no action" in env.step(write_call("sort", {"file_name": "final_report.pdf"}))[0]
    assert '"name": "sort"' in observation
    assert "no action" not in env.step(write_call("sort", {"file_name": "final_report.pdf"}))[0]


def test_damaged_snapshots_are_refused_or_leave_a_working_environment() -> None:
    env, draw, saved = BFCL(category="miss_func"), random.Random(0), []
    for task in (0, 20, 40):
        _, info = env.reset(options={"task": task})
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
            saved.append(env.snapshot())
    found = [try_one(env, draw, saved) for _ in range(120)]
    assert not [words for how, words in found if how == "broken"]
    assert sum(how == "refused" for how, _ in found) > 30


@pytest.mark.parametrize("category", ["base", "miss_func"])
def test_it_keeps_every_promise(category: str) -> None:
    assert not check("turngym/BFCL-v0", options={"category": category}, episodes=1, in_process=True).findings


def test_wrong_names_are_refused_and_the_expert_does_not_follow_others() -> None:
    with pytest.raises(ConfigError, match="category"):
        BFCL(category="multi_turn_base")
    env = BFCL()
    with pytest.raises(UnknownName, match="no task named 'x'"):
        env.reset(options={"task": "x"})
    env.reset(options={"task": 0})
    env.step(write_call("pwd", {}))
    with pytest.raises(ExpertLost, match="left the reference calls"):
        env.expert_action()
