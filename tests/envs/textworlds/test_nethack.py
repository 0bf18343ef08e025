"""NetHack in words: games that repeat, a script that goes down, and keys that no text reaches."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.check import check
from turngym.envs.textworlds.nethack.descent import Memory, Script
from turngym.envs.textworlds.nethack.nethack import NetHack
from turngym.envs.textworlds.nethack.paths import MAP_GLYPHS
from turngym.envs.textworlds.nethack.progression import progression
from turngym.errors import ConfigError, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("nle", reason="it is in .venvs/games only: run make test-integration")

TRANSCRIPT = """
import random
from turngym.envs.textworlds.nethack.nethack import NetHack
for character in ("mon-hum-neu-mal", "@"):
    env, dice = NetHack(character=character), random.Random(0)
    print(env.reset(seed=3))
    for _ in range(60):
        actions = env.legal_actions()
        step = env.step(", ".join(dice.choices(actions, k=4)))
        print(step if step[4]["success"] < 0 else env.reset())
"""
WORDS = {
    **{"law": "lawful", "neu": "neutral", "cha": "chaotic"},
    **{"hum": "human", "elf": "elven", "dwa": "dwarven", "gno": "gnomish", "orc": "orcish"},
}


def played(env: NetHack, seed: int, dice: random.Random | None) -> tuple[int, float, float]:
    """Play an episode by the script, or at random; return its success, the sum of rewards and the score."""
    _, info = env.reset(seed=seed)
    rewards = 0.0
    while info["success"] < 0:
        _, reward, _, _, info = env.step(dice.choice(info["legal_actions"]) if dice else env.expert_action())
        rewards += reward
    return info["success"], rewards, info["score"]


def test_the_script_goes_down_and_random_play_does_not() -> None:
    env, dice = NetHack(split="test", goal=3, max_turns=200), random.Random(0)
    assert sum(played(env, seed, None)[0] for seed in range(4)) >= 3
    assert not sum(played(env, seed, dice)[0] for seed in range(2))
    env.close()


def test_dense_rewards_add_up_to_the_progress() -> None:
    env = NetHack(goal=4, reward="dense", max_turns=30)
    for seed in range(3):
        assert played(env, seed, None)[1] == pytest.approx(env.progress())
        assert env.score() == progression(env._deepest, env._highest)
        assert env.turn_columns()["outcome/depth"] == 1 + 3 * env.progress()
    env.close()


def test_transcripts_repeat_in_other_processes_and_write_no_files(tmp_path: Path) -> None:
    command, python = [sys.executable, "-c", TRANSCRIPT], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, env=python).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 30_000
    assert not list(tmp_path.iterdir())


def test_games_in_one_process_do_not_touch_each_other() -> None:
    actions = [
        random.Random(seed).choices(["north", "far east", "far south", "search 5", "west"], k=25) for seed in (0, 1)
    ]
    envs = [NetHack(), NetHack()]
    together = [[env.reset(seed=seed)[0]] for seed, env in enumerate(envs)]
    for turn in range(25):
        for seed, env in enumerate(envs):
            together[seed].append(env.step(actions[seed][turn])[0])
    for seed, env in enumerate(envs):
        alone = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in actions[seed])]
        assert together[seed] == alone
        env.close()


def test_snapshots_continue_equally_with_the_same_next_step_of_the_script() -> None:
    env, other = NetHack(), NetHack()
    env.reset(seed=1)
    saved, steps = [env.snapshot()], []
    for _ in range(30):
        action = env.expert_action()
        steps.append((action, env.step(action)))
        saved.append(env.snapshot())
    for turn in range(0, 30, 6):
        other.restore(saved[turn])
        assert other.expert_action() == steps[turn][0]
        assert other.step(steps[turn][0]) == steps[turn][1]
        assert other.snapshot() == saved[turn + 1]
    damaged = json.loads(saved[3])
    for change in ({"seed": 1}, {"actions": ["north"] * 9}, {"actions": ["save"]}, {"deepest": 4}, {"turns": 99}):
        with pytest.raises(ConfigError):
            env.restore(json.dumps({**damaged, "state": {**damaged["state"], **change}}).encode())


@pytest.mark.parametrize(
    "action", ["", "save", "S", "#quit", "quit", "!", "^Z", "O", "X", "explore", "name a Bob", "travel >", "\x1bS"]
)
def test_texts_reach_no_other_keys(action: str) -> None:
    env = NetHack()
    _, before = env.reset(seed=0)
    _, _, _, _, info = env.step(action)
    assert not info["action_is_valid"]
    assert info["anchor"] == before["anchor"]
    env.close()


def test_letters_of_the_inventory_keep_their_case_and_commands_do_not() -> None:
    env = NetHack()
    env.reset(seed=0)
    assert "You don't have that object" in env.step("DROP A")[0]
    assert "You cannot drop something you are wearing" in env.step("Drop a")[0]
    env.close()


@pytest.mark.parametrize("character", ["mon-hum-cha-fem", "val-dwa-law-fem", "wiz-elf-cha-mal", "ran-orc-cha-mal"])
def test_the_character_is_the_one_that_was_asked_for(character: str) -> None:
    env = NetHack(character=character)
    said = env.reset(seed=0)[0]
    _, race, alignment, _ = character.split("-")
    assert f"You are a {WORDS[alignment]}" in said
    assert WORDS[race] in said
    env.close()


def test_errors_say_what_to_do() -> None:
    with pytest.raises(UnknownName, match="val-hum-law-fem"):
        NetHack(character="val-hum-law-mal")
    with pytest.raises(ConfigError):
        NetHack(goal=1)


def test_the_script_leaves_peaceful_creatures_and_prays_once() -> None:
    env = NetHack()
    env.reset(seed=0)
    x, y = env.here
    sight = env._sight
    glyphs, names = sight.glyphs.copy(), sight.names.copy()
    glyphs[glyphs < MAP_GLYPHS] = MAP_GLYPHS + 19

    def seen(name: bytes, **others: Any) -> Script:
        around = glyphs.copy()
        around[y, x + 1] = 0
        names[y, x + 1] = 0
        names[y, x + 1, : len(name)] = list(name)
        return Script(sight._replace(glyphs=around, names=names, **others), Memory())

    assert seen(b"jackal").next_commands(5) == ["attack east"]
    assert not seen(b"peaceful gnome").hostile and not seen(b"floating eye").hostile
    assert seen(b"jackal", health=(2, 14)).next_commands(5) == ["attack east"]
    dying = seen(b"jackal", health=(2, 14), turns=301)
    assert dying.next_commands(5) == ["pray"]
    dying.memory.prayed = 301
    assert dying.next_commands(5) == ["attack east"]
    env.close()


def test_the_progression_is_that_of_balrog() -> None:
    found = [round(progression(depth, 1), 2) for depth in (1, 7, 13, 25, 49, 60)]
    assert found == [0, 0.05, 0.26, 0.47, 0.8, 0.81]
    assert [round(progression(1, level), 2) for level in (1, 5, 9, 13, 21)] == [0, 0.03, 0.12, 0.41, 0.73]


def test_it_keeps_every_promise() -> None:
    assert not check("turngym/NetHack-v0", options={"goal": 2, "max_turns": 60}, episodes=2, in_process=True).findings
