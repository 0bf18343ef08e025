"""ScienceWorld, played for real in Java processes that several games share."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

from turngym.benchmarks.suites import SUITES
from turngym.envs.check import check
from turngym.envs.textworlds.java import JavaGone, JavaObject, close_java
from turngym.envs.textworlds.scienceworld.env import ScienceWorld
from turngym.envs.textworlds.scienceworld.game import _ENTRY, UNKNOWN_ACTION, Game, find_jar, tidy
from turngym.envs.textworlds.scienceworld.tasks import (
    SIMPLIFICATIONS,
    VARIATIONS,
    gold_position,
    kinds_of,
    read_simplifications,
    variations,
)
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, EpisodeOver, SnapshotUnsupported, UnknownName

pytest.importorskip("scienceworld", reason="needs the optional package scienceworld")
if shutil.which("java") is None:
    pytest.skip("needs a Java runtime on the PATH", allow_module_level=True)
pytestmark = pytest.mark.integration

OUTSIDE = ("teleport to outside", "wait1", "look around", "wait", "look around", "wait1", "look around")
"""Animals wander about there."""


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorld]:
    made = ScienceWorld(kind="find-animal", split="test")
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def no_java_is_left() -> Iterator[None]:
    yield
    close_java()


def play(env: ScienceWorld, task: str, actions: tuple[str, ...]) -> list[Any]:
    return [env.reset(seed=0, options={"task": task}), *map(env.step, actions)]


def win(env: ScienceWorld) -> float:
    """Follow the gold path to the end; return the sum of the rewards."""
    total = 0.0
    while env._running:
        _, reward, _, _, info = env.step(env.expert_action())
        total += reward
    assert info["success"] == 1
    return total


def game_of(env: ScienceWorld) -> Game:
    assert env._game is not None
    return env._game


def shared_state(env: ScienceWorld) -> tuple[int, int]:
    """Return where the game of an environment, whose turn it is, stands in the random numbers and the count."""
    shared = game_of(env).process.shared[_ENTRY]
    return shared._seed.get(shared._random), shared._counter.count()


@pytest.mark.parametrize("task", ["find-animal/225", "find-animal/299"])
def test_the_gold_path_reaches_one_hundred(env: ScienceWorld, task: str) -> None:
    _, info = env.reset(options={"task": task})
    assert info["progress"] + win(env) == pytest.approx(1.0), "some tasks begin with a few points"
    _, info = env.restore(env.snapshot())
    assert (info["success"], info["score"], info["progress"]) == (1, 100.0, 1.0)


def test_games_that_take_turns_in_one_process_do_not_disturb_each_other(env: ScienceWorld) -> None:
    """They draw from one generator, and walk over sets in the order of addresses: without care, animals go astray."""
    alone = play(env, "find-animal/225", OUTSIDE)
    assert alone == play(env, "find-animal/225", OUTSIDE)
    other = ScienceWorld(kind="grow-fruit", lists_actions=True)
    third = ScienceWorld(kind="find-animal", split="test")
    seen: list[Any] = [env.reset(seed=0, options={"task": "find-animal/225"})]
    later: list[Any] = [third.reset(seed=0, options={"task": "find-animal/226"})]
    other.reset(seed=0)
    for action in OUTSIDE:
        other.step("wait1")
        seen.append(env.step(action))
        later.append(third.step(action))
    assert game_of(env).process is game_of(other).process is game_of(third).process
    assert json.dumps(seen) == json.dumps(alone)
    close_java()
    assert json.dumps(play(third, "find-animal/226", OUTSIDE)) == json.dumps(later), "in a process with another past"
    assert json.dumps(play(env, "find-animal/225", OUTSIDE)) == json.dumps(alone)
    for each in (other, third):
        each.close()


def test_a_game_that_is_constructed_in_mid_episode_takes_no_random_numbers_from_the_others(env: ScienceWorld) -> None:
    """The package builds a house before it is told the task, with the generator and the counter of all games."""
    alone = play(env, "find-animal/225", OUTSIDE)
    seen: list[Any] = [env.reset(seed=0, options={"task": "find-animal/225"})]
    marks = []
    for action in OUTSIDE:
        before = shared_state(env)
        newcomer = Game(find_jar(), lists_actions=False)
        newcomer._take_turn(game_of(env)._mark, lambda java: None)
        marks.append(shared_state(env) == before)
        seen.append(env.step(action))
        newcomer.close()
    assert json.dumps(seen) == json.dumps(alone)
    assert all(marks) and len(marks) == len(OUTSIDE)


def test_threads_see_what_one_thread_sees() -> None:
    seen = []
    for backend in ("sync", "thread"):
        vector = make_vec("turngym/ScienceWorld-v0", 3, backend=backend, kind="find-animal", reset_timeout_seconds=None)
        observations, infos = vector.reset(seed=1)
        steps = [(list(observations), [row["anchor"] for row in infos.rows])]
        for action in OUTSIDE:
            observations, *_, infos = vector.step((action,) * 3)
            steps.append((list(observations), [row["anchor"] for row in infos.rows]))
        seen.append(steps)
        vector.close()
    assert seen[0] == seen[1]


def test_a_branch_from_a_snapshot_equals_the_original_continuation(env: ScienceWorld) -> None:
    env.reset(options={"task": "find-animal/230"})
    for action in OUTSIDE[:3]:
        env.step(action)
    env.step("nonsense")
    saved = env.snapshot()
    rest = [env.step(action) for action in OUTSIDE[3:]]
    other = ScienceWorld(kind="find-animal", split="test")
    other.restore(saved)
    assert [other.step(action) for action in OUTSIDE[3:]] == rest
    content = json.loads(saved)
    content["state"]["anchor"] += " And a dragon."
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        other.restore(json.dumps(content).encode())
    other.close()


def test_java_that_is_killed_in_mid_episode_is_a_fault_of_its_slots_and_the_next_reset_recovers() -> None:
    vector = make_vec("turngym/ScienceWorld-v0", 2, kind="find-plant", autoreset_mode="disabled")
    before = vector.reset(seed=5)[0]
    slots = [ScienceWorld(kind="find-plant")]
    slots[0].reset(seed=5)
    os.kill(game_of(slots[0]).process.pid, signal.SIGKILL)
    _, rewards, _, truncations, infos = vector.step(("look around",) * 2)
    assert truncations.all() and not rewards.any()
    assert all("the Java process of ScienceWorld has ended" in row["fault"] for row in infos.rows)
    with pytest.raises(JavaGone, match=r"has ended with exit status -9: the episode is lost; reset\(\) starts"):
        slots[0].step("look around")
    again = vector.reset(seed=5)[0]
    assert list(again) == list(before)
    assert vector.step(("look around",) * 2)[-1].rows[0]["fault"] == ""
    vector.close()
    slots[0].close()
    with pytest.raises(JavaGone, match="closed in mid-episode"):
        slots[0].step("look around")


def test_text_that_is_no_action_changes_nothing(env: ScienceWorld) -> None:
    _, before = env.reset(seed=3)
    for text in ("", "   ", "\ud800", "take\x00", "漢字🙂\n", "sing", "move " * 5_000, "look around; inventory"):
        observation, reward, terminated, truncated, info = env.step(text)
        assert (observation, reward, terminated, truncated) == (UNKNOWN_ACTION, 0.0, False, False)
        assert info == {**before, "action_is_valid": False}
    assert env._actions == []
    assert env.step(" Look   around ")[-1]["action_is_valid"]


def test_a_wrong_focus_fails_the_task_and_keeps_the_score_it_had(env: ScienceWorld) -> None:
    env.reset(options={"task": "find-animal/225"})
    env.step("teleport to kitchen")
    _, reward, terminated, _, info = env.step("focus on table")
    assert terminated and info["success"] == 0 and info["score"] >= 0.0 and info["progress"] == 0.0
    assert reward <= -1.0
    with pytest.raises(EpisodeOver, match="call reset"):
        env.expert_action()


def test_the_list_of_actions_is_sorted_and_leads_somewhere() -> None:
    env = ScienceWorld(kind="lifespan-longest-lived", lists_actions=True)
    _, info = env.reset(seed=1)
    draw = np.random.default_rng(0)
    assert len(info["legal_actions"]) > 100
    for _ in range(4):
        legal = info["legal_actions"]
        assert list(legal) == sorted(set(legal))
        info = env.step(str(draw.choice([action for action in legal if not action.startswith("focus")])))[-1]
        assert info["action_is_valid"]
    env.close()


def test_the_expert_follows_after_a_look_and_says_so_when_the_path_is_left(env: ScienceWorld) -> None:
    env.reset(options={"task": "find-animal/225"})
    expected = env.expert_action()
    for action in ("look around", "inventory", "task", "what?"):
        env.step(action)
    assert env.expert_action() == expected
    env.step("wait1")
    with pytest.raises(ConfigError, match="has left the gold path"):
        env.expert_action()


def test_the_tables_agree_with_the_package(env: ScienceWorld) -> None:
    env.reset(seed=0)
    game = JavaObject(game_of(env)._java._lease._pool, "scienceworld.runtime.pythonapi.PythonInterface")
    assert set(game.call("getTaskNames")) == set(VARIATIONS)
    assert set(game.call("getPossibleSimplifications").split(", ")) == set(SIMPLIFICATIONS)
    with game.process.lock:
        for kind, total in VARIATIONS.items():
            assert game.call("getTaskMaxVariations", kind) == total
            assert game.call("load", kind, 0, "", False) == ""
            for split, method in (("train", "Train"), ("dev", "Dev"), ("test", "Test")):
                assert game.call(f"getVariations{method}") == tuple(variations(kind, split))
    game.close()


def test_tasks_are_chosen_by_name_number_or_seed(env: ScienceWorld) -> None:
    assert env.tasks()[0] == "find-animal/225" and len(env.tasks()) == 75
    assert env.reset(options={"task": "find-animal/226"}) == env.reset(options={"task": 1})
    with pytest.raises(UnknownName, match="no task named 'find-animal/1'"):
        env.reset(options={"task": "find-animal/1"})
    mixed = ScienceWorld(split="dev", variations=2)
    assert len(mixed.tasks()) == 60 and mixed.tasks()[:2] == ("boil/14", "boil/15")
    assert len({mixed._find(None)[0] for _ in range(300)}) == 30


@pytest.mark.parametrize("name", ["scienceworld", "scienceworld-eto"])
def test_suites_play_every_variation_that_they_name_once(name: str) -> None:
    suite, count = SUITES[name], 0
    for entry in suite.entries:
        env = ScienceWorld(**entry.env_kwargs)
        found = []
        for seed in entry.find_seeds():
            env.np_random, _ = np_random(seed)
            found.append("/".join(map(str, env._find(None))))
        assert sorted(found) == sorted(env.tasks())
        count += len(found)
    assert count == {"scienceworld": 271, "scienceworld-eto": 211}[name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "boiling"}, "no task named 'boiling'. Did you mean 'boil'"),
        ({"simplifications": "openDoor"}, "no simplification 'openDoor'. Did you mean 'openDoors'"),
        ({"kind": "power-component", "simplifications": "noElectricalAction"}, "makes 'power-component' impossible"),
        ({"variations": -1}, "variations"),
        ({"split": "validation"}, "no split 'validation'"),
        ({"max_turns": 0}, "max_turns"),
    ],
)
def test_wrong_options_are_answered_with_the_way_out(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=message):
        ScienceWorld(**options)


def test_the_check_finds_nothing() -> None:
    """A task with a short gold path and one episode a rule, because episodes are what takes time here."""
    assert not check("turngym/ScienceWorld-v0", episodes=1, options={"kind": "lifespan-longest-lived"}).findings


def test_simplifications_have_one_canonical_form() -> None:
    kinds = kinds_of("boil")
    assert read_simplifications(" openDoors,teleportAction ", kinds) == "teleportAction,openDoors"
    assert read_simplifications("openDoors,easy", kinds) == "easy"
    assert read_simplifications("", kinds) == ""


def test_a_path_is_left_by_anything_that_takes_time() -> None:
    assert gold_position(["look around", "go outside", "task"], ["go outside", "wait"]) == 1
    assert gold_position(["look around"], ["look around", "wait"]) == 1
    assert gold_position(["wait1"], ["go outside"]) is None
    assert tidy(" a \n\tb \n") == "a\n  b"
