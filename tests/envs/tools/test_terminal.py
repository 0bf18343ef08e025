"""Terminal: solvable tasks of every family, exact snapshots, a judge of files, a shell that keeps what it says."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from turngym.envs.tools.terminal import Terminal
from turngym.envs.tools.terminal.families import FAMILIES
from turngym.envs.tools.terminal.judge import Judge
from turngym.envs.tools.terminal.task import Draw
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError
from turngym.seeding import stream

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "git", "make")), reason="bwrap, git or make is not installed"
)
SUBMIT = "<submit></submit>"


def bash(command: str) -> str:
    return f"<bash>{command}</bash>"


@pytest.fixture(scope="module")
def env() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def solve(env: Terminal, seed: int) -> tuple[list[str], dict[str, Any], list[float]]:
    """Play one episode as the expert; returns texts, the last info and the rewards."""
    observation, info = env.reset(seed=seed)
    shown, rewards = [observation], []
    while info["success"] < 0:
        action = env.expert_action()
        observation, reward, _, _, info = env.step(action)
        shown += [action, observation]
        rewards.append(reward)
    return shown, info, rewards


@pytest.mark.parametrize("family", FAMILIES)
def test_expert_solves_every_family(family: str) -> None:
    env = Terminal(family=family, level=3)
    shown, info, rewards = solve(env, 5)
    env.close()
    assert info["success"] == 1 and info["progress"] == 1.0, "\n".join(shown)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert info["columns"] == {"family": family}


@pytest.mark.integration
@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_expert_solves_many_tasks_of_every_family(family: str, level: int) -> None:
    env = Terminal(family=family, level=level, split="test")
    shown, info, _ = solve(env, 0)
    assert info["success"] == 1, "\n".join(shown)
    env.close()


@pytest.mark.parametrize("family", FAMILIES)
def test_tasks_are_many_and_none_is_solved_at_the_start(family: str) -> None:
    def never(files: Any, command: str) -> Any:
        pytest.fail("a probe ran on the files of the start")

    found = set[str]()
    for number, level in itertools.product(range(25), (1, 2, 3)):
        task = FAMILIES[family](Draw(stream("terminal", number), level))
        verdict = Judge(task, never).verdict(task.files)
        assert not verdict.is_success and not verdict.unasked and verdict.progress < 1
        assert len(task.files) <= 300 and sum(len(each.data) for each in task.files.values()) < 256 * 1024
        found.add(repr((task.goal, task.files)))
    assert len(found) == 75


def test_two_tasks_in_one_episode_and_the_change_of_progress_as_reward() -> None:
    env = Terminal(tasks=2, level=1, reward="dense")
    _, info, rewards = solve(env, 2)
    env.close()
    assert len(env.parts) == 2 and info["success"] == 1
    _, info = env.reset(seed=2)
    assert sum(rewards) == pytest.approx(1.0 - info["progress"])


def test_snapshots_continue_equally_from_every_turn(env: Terminal) -> None:
    twin = Terminal()
    env.reset(seed=4)
    actions = [
        bash("mkdir -p /tmp/x/y; cd /tmp/x; export NAME='a b'; for i in 3 1 2; do echo $i > f$i; done; chmod 700 y"),
        bash('pwd; echo "$NAME"; find . ; ls -l --time-style=full-iso; ln -s f1 link; rm f2; touch f2; : $RANDOM'),
        "no action",
        bash("find .; ls -l --time-style=full-iso; stat -c '%a %n' *; readlink link; echo $RANDOM; cat f*; false"),
        SUBMIT,
    ]
    snapshots, seen = list[bytes](), list[Any]()
    for action in actions:
        snapshots.append(env.snapshot())
        seen.append(env.step(action))
    assert "'" not in seen[1][0] and "/tmp/x\na b\n.\n" in seen[1][0]
    for turn, snapshot in enumerate(snapshots):
        twin.restore(snapshot)
        assert twin.snapshot() == snapshot
        assert [twin.step(action) for action in actions[turn:]] == seen[turn:]
    twin.close()


@pytest.mark.parametrize("damage", [{"number": -1}, {"number": 7}, {"tree": 3}, {"log": [["bash ls"]]}])
def test_damaged_snapshots_are_refused(env: Terminal, damage: dict[str, Any]) -> None:
    env.reset(seed=0)
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())


def test_nothing_of_an_episode_is_left_in_the_next(env: Terminal) -> None:
    look = bash(
        "stat -c '%a %n' / /*; ls -A /etc; ls -lA --time-style=+%s /dev/shm /tmp /root /app/*; env; ps -A | wc -l"
    )
    env.reset(seed=3)
    first = env.step(look)[0]
    env.step(bash("export X=1; touch /tmp/a /root/b /etc/c /dev/shm/d; chmod 0 /etc /root /; cd /tmp; sleep 99 &"))
    env.reset(seed=3)
    assert env.step(look)[0] == first


def test_a_shell_says_how_a_command_ended(env: Terminal) -> None:
    env.reset(seed=0)
    assert env.step(bash("exit 3"))[0] == "<output>\nThere was no output.\nExit code: 3\n</output>"
    assert "vim needs a terminal, and there is none: write a file with cat" in env.step(bash("vim x"))[0]
    assert (
        "There is no editor here: give the text"
        in env.step(bash("cd /tmp; git init -q .; git commit --allow-empty"))[0]
    )
    long = env.step(bash("yes line | head -n 5000; echo end"))[0]
    assert len(long) < 4200 and "characters left out" in long and long.endswith("end\n</output>")
    assert "syntax error" in env.step(bash("echo ("))[0]
    assert env.step(bash("pwd"))[0] == "<output>\n/tmp\n</output>"


def test_a_command_without_end_is_stopped() -> None:
    env = Terminal(seconds=5.0)  # time for a busy machine to print
    env.reset(seed=0)
    assert env.step(bash("echo one; sleep 60"))[0] == "<output>\none\nIt was stopped: out of time.\n</output>"
    env.close()


@pytest.mark.parametrize(
    "action", ["", "ls", "<bash> </bash>", write_call("bash", {"text": "ls"}), write_call("rm", {})]
)
def test_other_texts_are_answered_and_change_nothing(env: Terminal, action: str) -> None:
    _, before = env.reset(seed=0)
    observation, _, _, _, info = env.step(action)
    assert observation.startswith("That is no action; ") and not info["action_is_valid"]
    assert info["progress"] == before["progress"]


def test_native_calls_and_json_are_the_same_actions(env: Terminal) -> None:
    other = Terminal(form="json")
    assert env.native_tools is not None and other.native_tools is None
    other.reset(seed=0)
    env.reset(seed=0)
    seen = env.step(write_call("bash", {"command": "echo 1"}))[0]
    assert seen == other.step('{"tool": "bash", "command": "echo 1"}')[0] == "<output>\n1\n</output>"
    assert env.step(write_call("submit", {}))[2]
    other.close()


def test_the_last_turn_is_judged() -> None:
    env = Terminal(family="table", level=1, max_turns=2)
    env.reset(seed=0)
    env.step(env.expert_action())
    _, reward, terminated, truncated, info = env.step(env.expert_action())
    env.close()
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, 1)


_PLAY = """
import hashlib
from turngym.envs.tools.terminal import Terminal
env, told = Terminal(), []
for seed in range(3):
    observation, info = env.reset(seed=seed)
    told.append(env.instance + observation)
    while info["success"] < 0:
        observation, _, _, _, info = env.step(env.expert_action())
        told += [observation, env.snapshot().decode()]
env.close()
print(hashlib.sha256("".join(told).encode()).hexdigest())
"""


@pytest.mark.integration
def test_other_locales_and_clocks_give_the_same_episodes() -> None:
    """With the locale, zone, mask and hash seed of another machine, byte for byte."""
    found = set[str]()
    for locale, zone, mask, seed in (("C", "UTC", 0o022, "0"), ("tr_TR.UTF-8", "Asia/Tokyo", 0o077, "7")):
        variables = {**os.environ, "LC_ALL": locale, "LANG": locale, "TZ": zone, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _PLAY], env=variables, capture_output=True, text=True, umask=mask, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop()) == 65
