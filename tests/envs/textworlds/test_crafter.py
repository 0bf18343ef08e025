"""Crafter in words: the package's own worlds, rules and rewards, which repeat; what is in view is told."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from damaged_snapshots import try_one

from turngym.agents.intervals import cluster_bootstrap
from turngym.envs.check import check
from turngym.envs.textworlds.crafter import world
from turngym.envs.textworlds.crafter.env import Crafter
from turngym.envs.textworlds.crafter.view import HIGH, WIDE, name_of, place
from turngym.errors import ConfigError, SnapshotUnsupported
from turngym.wrappers.rewards.caption_reward import CaptionReward

pytestmark = pytest.mark.integration
crafter = pytest.importorskip("crafter", reason="it is in .venvs/games only: run make test-integration")

AREA = 24


def bare(seed: int) -> Any:
    """Return the package's environment, which makes its images, with creatures in the order of their arrival."""
    env = crafter.Env(area=(AREA, AREA), seed=seed, length=None)
    env.reset()
    chunks: Any = defaultdict(world._InOrder)
    for each in env._world.objects:
        chunks[env._world.chunk_key(each.pos)].add(each)
    env._world._chunks = chunks
    return env


def things(env: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(type(each).__name__, tuple(map(int, each.pos))) for each in env._world.objects]


@pytest.mark.parametrize("fresh", [True, False], ids=["generated", "kept"])
def test_worlds_and_rules_are_those_of_the_package_into_the_night(fresh: bool) -> None:
    if fresh:
        world._start.cache_clear()
    theirs, env, dice = bare(7), Crafter(area=AREA), random.Random(0)
    env.reset(seed=0)
    env._enter(7)
    darkest = 1.0
    for _ in range(230):
        action = dice.randrange(17)
        for each in (theirs, env._inner):
            each._player.inventory.update(health=9, food=9, drink=9, sapling=1, wood=5, stone=5)
        _, reward, died, info = theirs.step(action)
        assert env._follow(action)[:2] == (reward, bool(died))
        assert things(env._inner) == things(theirs)
        assert np.array_equal(env._inner._world._mat_map, theirs._world._mat_map)
        assert env._inner._player.inventory == info["inventory"]
        darkest = min(darkest, theirs._world.daylight)
    assert darkest < 0.2
    assert env._inner._world.random.uniform() == theirs._world.random.uniform()


def test_what_is_told_is_what_is_around() -> None:
    env, dice = Crafter(area=AREA), random.Random(1)
    observation, _ = env.reset(seed=2)
    for _ in range(60):
        inner, (x, y) = env._inner, map(int, env._inner._player.pos)
        told = observation.split("You see: ")[1].split(".\n")[0].split(", ")
        cells = {(dx, dy) for dx in range(-WIDE, WIDE + 1) for dy in range(-HIGH, HIGH + 1)} - {(0, 0)}
        around = {cell: inner._world[x + cell[0], y + cell[1]] for cell in cells}
        names = {f"{name_of(*found)} {place(*cell)}" for cell, found in around.items() if found[0]}
        assert set(told) <= names and len(told) == len(set(told))
        creatures = {f"{name_of(*found)} {place(*cell)}" for cell, found in around.items() if found[1]}
        grounds = {found[0] for found in around.values() if found[0] and not found[1]}
        assert creatures <= set(told) and {each.split(" ")[0] for each in told} >= grounds
        observation, *_, info = env.step(dice.choice(env.legal_actions()))
        assert info["anchor"].startswith(observation.split("Achieved: ")[0].strip()[:20])


def test_the_script_reaches_its_goal_and_rewards_add_up() -> None:
    env = Crafter(area=32, goal=6, max_turns=400)
    solved = 0
    for seed in range(4):
        _, info = env.reset(seed=seed)
        total = 0.0
        while info["success"] < 0:
            observation, reward, _, _, info = env.step(env.expert_action())
            total += reward
        reached = sum(info["columns"].values())
        assert info["score"] == reached / 22 and info["progress"] == min(1, reached / 6)
        assert total == pytest.approx(reached + (env._inner._player.health - 9) / 10)
        assert info["columns"].keys() == {f"outcome/{name}" for name in crafter.constants.achievements}
        assert ("Achieved: " in observation) == (info["success"] == 1)
        solved += info["success"]
    assert solved >= 2
    env = Crafter(area=16)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="pass goal="):
        env.expert_action()


def test_death_ends_an_episode_without_success() -> None:
    env = Crafter(area=AREA, goal=1)
    env.reset(seed=0)
    env._inner._player.inventory["health"] = 0
    observation, _, terminated, truncated, info = env.step("noop")
    assert (terminated, truncated, info["success"]) == (True, False, 0)
    assert observation.startswith("You died.")


@pytest.mark.parametrize(
    ("action", "is_valid"), [("Move Left", True), (" place_STONE ", True), ("jump", False), ("", False)]
)
def test_actions_are_read_by_their_names(action: str, is_valid: bool) -> None:
    env = Crafter(area=AREA)
    _, before = env.reset(seed=0)
    observation, _, _, _, info = env.step(action)
    assert info["action_is_valid"] == is_valid
    assert is_valid or (info["anchor"] == before["anchor"] and observation.startswith("That is no action."))


def test_damaged_snapshots_are_refused_or_leave_a_working_environment() -> None:
    env, draw, saved = Crafter(area=16, goal=3), random.Random(0), []
    for seed in range(2):
        env.reset(seed=seed)
        for _ in range(10):
            env.step(env.expert_action())
            saved.append(env.snapshot())
    found = [try_one(env, draw, saved) for _ in range(80)]
    assert not [words for how, words in found if how == "broken"]
    assert sum(how == "refused" for how, _ in found) > 20


def test_a_snapshot_of_another_package_is_told_apart() -> None:
    env = Crafter(area=16)
    env.reset(seed=0)
    env.step("move_left")
    saved = env.snapshot()
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        env.restore(saved.replace(b"You have: nothing", b"You have: 1 wood"))


def test_a_snapshot_without_its_last_action_is_refused_though_its_text_is_the_same() -> None:
    env = Crafter(area=16)
    pairs = ((env.reset(seed=seed)[0], env.step("noop")[0]) for seed in range(50))
    assert any(first == second for first, second in pairs), "the last one was played"
    saved = json.loads(env.snapshot())
    saved["state"]["actions"].pop()
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        env.restore(json.dumps(saved).encode())


def test_it_keeps_every_promise() -> None:
    options = {"area": 16, "goal": 2, "max_turns": 40}
    assert not check("turngym/Crafter-v0", options=options, episodes=1, in_process=True).findings


def test_labelled_inventories_reward_the_script_more_than_random_play() -> None:
    words = ("wood", "stone", "pickaxe", "sapling")

    def label(captions: list[str]) -> list[float]:
        return [sum(word in caption for word in words) / len(words) for caption in captions]

    sums: dict[str, list[float]] = {"random": [], "expert": []}
    for player, found in sums.items():
        inner = Crafter(area=AREA, goal=12, max_turns=80)
        env = CaptionReward(inner, labeller=label, pattern="^You have: (.*)", power=None, wait=True)
        for seed in range(6):
            dice = random.Random(seed)
            env.reset(seed=seed)
            while env.turn < 40:
                action = env.expert_action() if player == "expert" else dice.choice(inner.legal_actions())
                if any(env.step(action)[2:4]):
                    break
            saved = env.snapshot()
            env.restore(saved)
            assert env.snapshot() == saved
            found.append(env.state["sum"])
    interval = {player: cluster_bootstrap(found, range(6)) for player, found in sums.items()}
    assert interval["expert"].low > interval["random"].high
