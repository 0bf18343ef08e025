"""MiniHack in words: levels that repeat, the package's judge, shortest paths, and keys that no text reaches."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from turngym.envs.check import check
from turngym.envs.textworlds.nethack.minihack import MiniHack
from turngym.envs.textworlds.nethack.nethack import NetHack
from turngym.envs.textworlds.nethack.paths import MAP_GLYPHS
from turngym.envs.textworlds.nethack.words import VERBS, commands_of, parse
from turngym.errors import ConfigError, EpisodeOver, UnknownName

pytestmark = pytest.mark.integration
pytest.importorskip("nle", reason="it is in .venvs/games only: run make test-integration")

MAZE = "MazeWalk-9x9"
FLOOR = MAP_GLYPHS + 19
"""First of six kinds of ground: floor, corridors, staircases."""
TRANSCRIPT = """
import random
from turngym.envs.textworlds.nethack.minihack import MiniHack
for task in ("Room-Ultimate-15x15", "Quest-Easy", "Corridor-R3"):
    env, dice = MiniHack(task=task, slack=0), random.Random(0)
    print(env.reset(seed=3))
    for _ in range(40):
        print(env.step(dice.choice(env.legal_actions())))
"""

FORK = """
import os, sys
from turngym.envs.textworlds.nethack.minihack import MiniHack
env = MiniHack(task="MazeWalk-9x9")
env.reset(seed=0)
env.step(env.expert_action())
if os.fork():
    os.wait()
print([env.step(env.expert_action()) for _ in range(4)])
print(env._game.env.nethack._tempdir.name, flush=True)
env.reset(seed=0)
env.close()
sys.exit()
"""


def played(env: MiniHack, seed: int, is_expert: bool, dice: random.Random) -> tuple[int, int]:
    """Play an episode; return its success and its turns."""
    _, info = env.reset(seed=seed)
    while info["success"] < 0:
        _, _, _, _, info = env.step(env.expert_action() if is_expert else dice.choice(info["legal_actions"]))
    return info["success"], env.turn


@pytest.mark.parametrize("task", [MAZE, "Room-Random-15x15"])
def test_the_expert_takes_the_shortest_path_and_random_play_rarely_arrives(task: str) -> None:
    env, dice = MiniHack(task=task), random.Random(0)
    for seed in range(20):
        assert played(env, seed, True, dice) == (1, env._shortest)
    assert sum(played(env, seed, False, dice)[0] for seed in range(20)) <= 5
    env.close()


def test_a_locked_door_leaves_time_to_kick_it_in() -> None:
    env, dice = MiniHack(task="LockedDoor"), random.Random(0)
    assert all(played(env, seed, True, dice)[0] == 1 for seed in range(40))
    env.close()


def test_transcripts_repeat_in_other_processes() -> None:
    command = [sys.executable, "-c", TRANSCRIPT]
    runs = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 30_000


@pytest.mark.parametrize("task", [MAZE, "Corridor-R3", "River"])
def test_the_map_of_the_whole_level_is_that_of_the_game(task: str) -> None:
    env = MiniHack(task=task)
    for seed in range(5):
        env.reset(seed=seed)
        seen = (env._glyphs >= FLOOR) & (env._glyphs < FLOOR + 6)
        assert seen.any() and (env._glyphs[seen] == env._known[seen]).all()
    env.close()


def test_games_in_one_process_do_not_touch_each_other() -> None:
    actions = [random.Random(seed).choices(["north", "south", "east", "west", "southeast"], k=30) for seed in range(4)]
    alone = []
    for seed in range(4):
        env = MiniHack(task="Room-Ultimate-15x15", slack=0, max_turns=100)
        alone.append([env.reset(seed=seed)[0]])
        for action in actions[seed]:
            if env._running:
                alone[seed].append(env.step(action)[0])
    envs = [MiniHack(task="Room-Ultimate-15x15", slack=0, max_turns=100) for _ in range(4)]
    together = [[each.reset(seed=seed)[0]] for seed, each in enumerate(envs)]
    for turn in range(30):
        for seed, each in enumerate(envs):
            if each._running:
                together[seed].append(each.step(actions[seed][turn])[0])
    assert together == alone


@pytest.mark.parametrize(("task", "is_by_level"), [("Room-Random-5x5", True), ("Memento-F2", False)])
def test_splits_share_no_level_but_of_the_few_of_a_task(task: str, is_by_level: bool) -> None:
    found: dict[str, set[str]] = {}
    starts: dict[str, str] = {}
    for split in ("train", "dev", "test"):
        env = MiniHack(task=task, split=split)
        for seed in range(20):
            observation, _ = env.reset(seed=seed)
            found.setdefault(split, set()).add(env.instance.rpartition(" ")[0] if is_by_level else env.instance)
            assert starts.setdefault(env.instance, observation) == observation
        assert len(found[split]) >= 10
        env.close()
    assert not found["train"] & found["test"] and not found["dev"] & (found["test"] | found["train"])


@pytest.mark.parametrize("task", ["Corridor-R3", "Room-Random-15x15"])
def test_snapshots_continue_equally_from_every_turn(task: str) -> None:
    env, other, dice = MiniHack(task=task, slack=0), MiniHack(task=task, slack=0), random.Random(5)
    env.reset(seed=1)
    saved, steps, progress = [env.snapshot()], [], [env.progress()]
    for _ in range(25):
        action = dice.choice(env.legal_actions())
        steps.append((action, env.step(action)))
        saved.append(env.snapshot())
        progress.append(env.progress())
    for turn, state in enumerate(saved[:-1]):
        other.restore(state)
        assert other.progress() == progress[turn]
        assert other.step(steps[turn][0]) == steps[turn][1]
        assert other.snapshot() == saved[turn + 1]
    assert task == "Corridor-R3" or len(set(progress)) > 3


def test_a_list_of_commands_ends_with_the_limit_of_commands() -> None:
    env = MiniHack(task="Room-5x5", commands=20, slack=1)
    env.reset(seed=0)
    away = ["east", "east", "west", "east", *["southeast"] * 4, *["south"] * 4]
    observation, reward, terminated, truncated, info = env.step(", ".join(away))
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, 0)
    assert "8 of 12 commands were not carried out" in observation
    assert observation.endswith("You may use 0 more commands.")
    env.close()


def test_what_ended_a_game_is_said() -> None:
    env = MiniHack(task="Freeze-Lava-Restricted", commands=20)
    env.reset(seed=0)
    observation, _, terminated, _, _ = env.step(", ".join(["east"] * 20))
    assert terminated
    assert "\nYou fall into the lava! You burn to a crisp...\nThe game is over.\n" in observation


def test_the_end_of_a_fork_leaves_its_games_to_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False)
    child, its_folder, parent, folder = ended.stdout.splitlines()
    assert child == parent and "You may use" in child
    assert its_folder != folder and not ended.stderr


@pytest.mark.parametrize("open_env", [lambda: MiniHack(task=MAZE), NetHack], ids=["minihack", "nethack"])
def test_a_closed_environment_says_so_and_starts_again(open_env: Callable[[], MiniHack | NetHack]) -> None:
    env = open_env()
    first, _ = env.reset(seed=3)
    env.step("search")
    for _ in range(2):
        env.close()
    with pytest.raises(EpisodeOver, match=r"was closed in mid-episode: call reset\(\) first"):
        env.step("search")
    assert env.reset(seed=3)[0] == first
    saved = env.snapshot()
    env.close()
    assert env.restore(saved)[0] == first and env.step("search")
    env.close()


def test_damaged_snapshots_are_refused() -> None:
    env = MiniHack(task=MAZE)
    env.reset(seed=0)
    for _ in range(4):
        env.step(env.expert_action())
    saved = json.loads(env.snapshot())
    for change in ({"seed": 1}, {"seed": "x"}, {"actions": ["north"] * 9}, {"actions": ["save"]}, {"turns": 99}):
        damaged = {**saved, "state": {**saved["state"], **change}}
        with pytest.raises(ConfigError):
            env.restore(json.dumps(damaged).encode())


HOSTILE = (
    "",
    "save",
    "S",
    "#quit",
    "quit",
    "!",
    "shell",
    "^Z",
    "options",
    "O",
    "X",
    "explore",
    "name a Bob",
    "travel >",
)
MALFORMED = (
    "north,north",
    "eat #",
    "eat abc",
    "eat a b c d e",
    "search 999",
    "search \u0663",
    "north " * 999,
    "\x1bS",
    "m north",
)


@pytest.mark.parametrize("action", [*HOSTILE, *MALFORMED])
def test_texts_reach_no_other_keys(action: str) -> None:
    env = MiniHack(task="Quest-Easy")
    _, before = env.reset(seed=0)
    _, _, _, _, info = env.step(action)
    assert not info["action_is_valid"]
    assert info["anchor"] == before["anchor"]


def test_no_command_of_the_list_saves_quits_or_leaves_the_rules() -> None:
    commands = [parse(name, commands_of(frozenset(range(256)))) for name in VERBS]
    keys = {key for each in commands if each for key in each.keys}
    forbidden = {*map(ord, "S!#XOCN_;"), 0x80 | ord("q"), 26, 3, 22, 23, 6, 20}
    assert not keys & forbidden


def test_questions_are_answered_and_left() -> None:
    env = MiniHack(task="Eat-Fixed", commands=3)
    env.reset(seed=0)
    assert "drop" in env.step("drop")[0]
    observation, *_ = env.step("drop a, inventory, search 2")
    assert "You drop" in observation or "You have" in observation
    assert not env._game.part("internal")[1:4].any()


WITHOUT_STAIRS = (
    """Eat Freeze-Horn-Full Levitate-Ring-Full Memento-F2 Pray PutOn Read Sink Wear Wield WoD-Easy-Full Zap"""
)


def test_every_kind_of_task_has_a_goal_and_a_wrong_end_is_no_success() -> None:
    for task in WITHOUT_STAIRS.split():
        env = MiniHack(task=task)
        assert "staircase down.\n" not in env.instructions, task
        env.close()
    env, dice, ends = MiniHack(task="Memento-Short-F2"), random.Random(0), Counter[int]()
    for seed in range(20):
        ends[played(env, seed, False, dice)[0]] += 1
    assert ends[0] and ends[1], "one of two ways ends with a trap"
    env.close()


def test_errors_say_what_to_do() -> None:
    with pytest.raises(UnknownName, match="MazeWalk-9x9"):
        MiniHack(task="MazeWalk-9x8")
    with pytest.raises(UnknownName):
        MiniHack(task="Boxoban-Medium")
    env = MiniHack(task="Eat")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no expert for Eat"):
        env.expert_action()


def test_it_keeps_every_promise() -> None:
    assert not check("turngym/MiniHack-v0", episodes=2, in_process=True).findings
