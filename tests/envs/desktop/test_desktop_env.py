"""Work on real desktops: every oracle, equal pictures for equal seeds, snapshots, and what reaches no goal."""

import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from desktop_parts import skip_without_programs

import turngym
from turngym.envs.check import check
from turngym.envs.desktop.env import Desktop
from turngym.envs.desktop.goals.table import GOALS
from turngym.errors import ConfigError, EpisodeOver, SnapshotUnsupported, UnknownName

skip_without_programs()
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def desktops() -> Iterator[list[Desktop]]:
    made = [Desktop("all", image=True, env_id="turngym/Desktop-v0") for _ in range(2)]
    yield made
    for env in made:
        env.close()


def begin(env: Desktop, name: str, seed: int) -> tuple[Any, dict[str, Any]]:
    env.names = (name,)
    return env.reset(seed=seed)


@pytest.mark.parametrize("name", sorted(GOALS))
def test_the_oracle_reaches_every_goal(desktops: list[Desktop], name: str) -> None:
    env = desktops[0]
    observation, info = begin(env, name, 1)
    assert info["progress"] == 0 and info["success"] == -1 and env.goal.text in observation["text"]
    for _ in range(env.max_turns):
        before = info["progress"]
        _, reward, terminated, truncated, info = env.step(env.expert_action())
        assert info["action_is_valid"] and not truncated and reward == float(terminated)
        assert info["progress"] >= before
        if terminated:
            break
    assert (info["success"], info["progress"], info["score"]) == (1, 1.0, 1.0)
    assert env.slot.starts == 1  # the display stays from goal to goal


@pytest.mark.parametrize("name", ["replace-word", "export-csv", "to-uppercase"])
def test_equal_seeds_show_equal_pictures_however_long_the_agent_thinks(desktops: list[Desktop], name: str) -> None:
    hasty, slow = desktops
    (one, first), (other, second) = (begin(env, name, 5) for env in desktops)
    turns = 0
    while True:
        np.testing.assert_array_equal(one["image"], other["image"])
        assert one["text"] == other["text"] and first == second
        if first["success"] >= 0:
            break
        action = hasty.expert_action()
        time.sleep(0.6)  # what a timer of a program does meanwhile must not show
        other, *_, second = slow.step(action)
        one, *_, first = hasty.step(action)
        turns += 1
    assert turns >= 6 and first["success"] == 1


def test_an_observation_is_goal_files_windows_and_picture(desktops: list[Desktop]) -> None:
    env = desktops[0]
    observation, info = begin(env, "correct-price", 2)
    assert observation["image"].shape == (600, 800, 3) and env.observation_space.contains(observation)
    lines = observation["text"].splitlines()
    assert lines[0].startswith("Goal: The price of ") and lines[1:3] == ["Saved in ~/table.gnumeric:", "sheet Stock"]
    assert lines[-1] == '- window "table.gnumeric - Gnumeric" at 0,0, 800 x 600, has the focus'
    assert (observation["image"] == 255).mean() > 0.3  # the empty cells
    seen, *_, after = env.step("key ctrl+h")
    assert '- dialog "Search & Replace"' in seen["text"] and "Saved in" not in seen["text"]
    assert (seen["image"] != observation["image"]).any() and after["anchor"] != info["anchor"]
    again, *_, back = env.step("key Escape")
    assert again["text"].splitlines()[1:] == lines[-1:] and back["progress"] == 0


@pytest.mark.parametrize("action", ["open the file", "click 800 10", "drag 1 1 to 2 600", "key super+l", ""])
def test_what_is_no_action_is_answered(desktops: list[Desktop], action: str) -> None:
    env = desktops[1]
    if not env._running:
        begin(env, "add-row", 0)
    observation, reward, terminated, _, info = env.step(action)
    assert not info["action_is_valid"] and not terminated and reward == 0
    assert "Unknown action" in observation["text"] or "no point of the screen" in observation["text"]


def test_saying_done_too_soon_earns_nothing_and_a_program_may_be_closed(desktops: list[Desktop]) -> None:
    env = desktops[1]
    begin(env, "write-note", 0)
    observation, *_, info = env.step("key ctrl+q")
    assert observation["text"] == "There are no windows." and info["fault"] == ""
    assert env.step('type "into nothing"')[4]["action_is_valid"]
    _, reward, terminated, _, info = env.step("done")
    assert (reward, terminated, info["success"], info["progress"]) == (0.0, True, 0, 0.0)
    with pytest.raises(EpisodeOver):
        env.step("wait")


def test_unsaved_work_does_not_count_and_half_of_it_counts_half(desktops: list[Desktop]) -> None:
    env = desktops[0]
    begin(env, "fill-cells", 3)
    plan = list(env.goal.plan)
    for action in plan[:2]:
        _, *_, info = env.step(action)
    assert info["progress"] == 0
    *_, info = env.step("key ctrl+s")
    assert info["progress"] == 0.5
    assert env.step("done")[1] == 0.0


def test_the_oracle_finds_its_way_back(desktops: list[Desktop]) -> None:
    env = desktops[0]
    for name in ("delete-line", "sum-column"):
        begin(env, name, 4)
        for action in ("key alt+f", "click 300 200", 'type "x"'):
            env.step(action)
        while True:
            _, reward, terminated, truncated, _ = env.step(env.expert_action())
            if terminated or truncated:
                break
        assert reward == 1.0


def test_a_branch_is_done_again_and_a_foreign_one_refused(desktops: list[Desktop]) -> None:
    env, other = desktops
    begin(env, "add-line", 6)
    env.step(env.expert_action())
    saved = env.snapshot()
    original = env.step(env.expert_action())
    for copy in (env, other):
        copy.names = ("add-line",)
        copy.restore(saved)
        branch = copy.step(copy.expert_action())
        np.testing.assert_array_equal(branch[0]["image"], original[0]["image"])
        assert branch[0]["text"] == original[0]["text"] and branch[1:] == original[1:]
    with pytest.raises(SnapshotUnsupported, match="replaying turngym/Desktop-v0 diverged"):
        env.restore(saved.replace(b"Add this line", b"Add that line"))


def test_options_are_checked() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'add-line'"):
        Desktop("add-lines")
    with pytest.raises(ConfigError, match="no task"):
        Desktop(())
    with pytest.raises(ConfigError, match="width"):
        Desktop(width=640)
    env = gymnasium.make("turngym/Desktop-v0", task=("add-row", "sort-rows"), render_mode="rgb_array")
    assert isinstance(env, turngym.TextEnv) and env.render().shape == (600, 800, 3)  # type: ignore[union-attr]
    env.close()


def test_the_check_finds_nothing() -> None:
    """On two goals of four turns: nearly all it costs is resets."""
    options = {"task": ("add-line", "correct-price"), "max_turns": 4}
    assert not check("turngym/Desktop-v0", episodes=1, in_process=True, options=options).findings
