"""Repo: solvable tasks of every kind, real tests and histories, exact snapshots, tools that never raise."""

import ast
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shell_attacks import expert_success

from turngym.envs.tools.repo import Repo
from turngym.envs.tools.repo.defects import KINDS, drawn_sketch
from turngym.envs.tools.repo.parts import chosen, drawn_values, named, parts, rendered
from turngym.envs.tools.repo.plan import Plan, drawn_package, with_cases
from turngym.envs.tools.repo.task import RepoTask, made_task
from turngym.envs.tools.repo.trial import ENDLESS, RAISED, VALUE, Trial
from turngym.envs.tools.terminal.task import Draw
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError
from turngym.seeding import stream

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "git")), reason="bwrap or git is not installed"
)
SUBMIT = "<submit></submit>"
OWN = [name for name, part in parts().items() if not part.is_vendored]


def call(tool: str, **arguments: Any) -> str:
    return write_call(tool, arguments)


def drawn(seed: int, level: int = 2) -> Draw:
    return Draw(stream("repo test", seed), level)


def drawn_plan(seed: int, name: str) -> Plan:
    draw = drawn(seed)
    return with_cases(drawn_package(draw, [name], 1), draw)


def drawn_task(seed: int, kind: str, level: int = 2) -> RepoTask:
    return made_task(drawn_sketch(drawn(seed, level), kind), level)


def written(task: RepoTask, folder: Path) -> Path:
    """Write a task's repository to a folder."""
    for name, entry in task.files.items():
        path = folder / name
        if entry.kind == "folder":
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.write_bytes(entry.data)
    return folder


@pytest.fixture(scope="module")
def env() -> Iterator[Repo]:
    made = Repo()
    yield made
    made.close()


@pytest.mark.parametrize("name", OWN)
def test_parts_work_and_their_cases_give_plain_values(name: str) -> None:
    plan = drawn_plan(OWN.index(name), name)
    found = [case for case in plan.cases if case.part == name]
    assert len(found) > 6 and {case.is_shown for case in found} == {True, False}
    kinds = [case.result[0] for case in found]
    assert kinds.count(VALUE) > len(kinds) / 2 and ENDLESS not in kinds
    for case in found:
        kind, value = case.result
        assert kind == RAISED or ast.literal_eval(repr(value)) == value
        assert kind != RAISED or value in ("ValueError", "KeyError"), case


@pytest.mark.parametrize("name", [name for name, part in parts().items() if part.features])
def test_features_are_seen_by_cases(name: str) -> None:
    plan = drawn_plan(7, name)
    for feature in parts()[name].features:
        without = Trial(plan.sources([feature])).run([case.text for case in plan.cases])
        assert [case.result for case in plan.cases] != without
        assert named(parts()[name].features[feature].request, plan.values)


def test_a_rendered_part_has_no_marks_left() -> None:
    values = drawn_values(drawn(1), parts())
    for name, part in parts().items():
        for features in ((), (*part.features, *part.changes)):
            text = rendered(part, values, features)
            assert not any(mark in text for mark in ("$", "#+ ", "#-\n", "#.\n")), name
            ast.parse(text)
    assert chosen(["ledger"])[-1] == "ledger" and "numkit" in chosen(["ledger"])


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_many_and_fail_as_they_say(kind: str) -> None:
    found = set[str]()
    for number, level in itertools.product(range(2), (1, 2, 3)):
        task = drawn_task(number, kind, level)
        assert task.failing and len(task.failing) < len(task.cases) and task.original
        assert len(task.files) <= 600 and sum(len(each.data) for each in task.files.values()) < 512 * 1024
        assert all(task.files[path].data.decode() != text for path, text in task.original.items())
        found.add(repr((task.goal, task.files)))
    assert len(found) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_the_repository_is_one_of_git_and_its_tests_run_on_python_alone(kind: str, tmp_path: Path) -> None:
    task = drawn_task(3, kind)
    folder = written(task, tmp_path)
    for words in (["fsck", "--strict"], ["status", "--porcelain"]):
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
        assert done.stdout == ""
    # -B, since the sources change within the second and the size by which compiled ones are recognised
    command = [sys.executable, "-I", "-B", "-c", "import sys, unittest; sys.path.insert(0, '.'); unittest.main(None)"]
    before = subprocess.run([*command[:-1], command[-1], "discover"], cwd=folder, capture_output=True, text=True)
    assert ("FAILED" in before.stderr) == (kind != "feature"), before.stderr
    for path, text in task.original.items():
        (folder / path).write_text(text)
    after = subprocess.run([*command, "discover"], cwd=folder, capture_output=True, text=True)
    assert after.stderr.endswith("OK\n"), after.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_expert_solves_every_kind(kind: str) -> None:
    env = Repo(kind=kind, level=3)
    _, info = env.reset(seed=5)
    assert info["progress"] == 0.0 and info["columns"] == {"kind": kind}
    assert expert_success(env, 5) == 1
    env.close()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_the_repository_is_the_source_without_the_defect(kind: str) -> None:
    task = drawn_task(2, kind)
    stored = [entry.data for entry in task.files.values()]
    for text in task.original.values():
        is_there = any(text.encode() in data for data in stored)
        assert not is_there or kind == "merge"  # whose last change is in the history, as it should


@pytest.mark.integration
@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_expert_solves_many_tasks(kind: str, level: int) -> None:
    tools = "files" if (level + list(KINDS).index(kind)) % 2 else "shell"
    env = Repo(kind=kind, level=level, tools=tools, split="test", max_turns=60)
    assert expert_success(env, 0) == 1
    env.close()


def test_the_shell_alone_is_enough_and_the_change_of_progress_is_a_reward() -> None:
    env = Repo(tools="shell", level=1, kind="removed", reward="dense")
    env.reset(seed=1)
    assert env.step(call("view", path="."))[0].startswith("That is no action; There is no tool 'view'.")
    rewards, info = [0.0], {"success": -1}
    while info["success"] < 0:
        _, reward, _, _, info = env.step(env.expert_action())
        rewards.append(reward)
    env.close()
    assert info["success"] == 1 and sum(rewards) == pytest.approx(1.0)


def test_snapshots_continue_equally_from_every_turn(env: Repo) -> None:
    twin = Repo()
    env.reset(seed=4)
    package = env.task.package
    actions = [
        call("view", path=package),
        call("edit", path=f"{package}/extra.py", old="", new="x = 1\n"),
        f"<bash>cat {package}/extra.py; ls -l --time-style=full-iso {package}; python3 -m unittest 2>&1; ls -R</bash>",
        call("edit", path=f"{package}/extra.py", old="x", new="y"),
        f"<bash>python3 -c 'import {package}.extra as e; print(e.y, object())'; git status --short</bash>",
        env.expert_action(),
        SUBMIT,
    ]
    snapshots, seen = list[bytes](), list[Any]()
    for action in actions:
        snapshots.append(env.snapshot())
        seen.append(env.step(action))
    assert "in 0.000s" in seen[2][0] and "1 <object object at 0x...>" in seen[4][0] and "?? " in seen[4][0]
    for turn, snapshot in enumerate(snapshots):
        twin.restore(snapshot)
        assert twin.snapshot() == snapshot
        assert [twin.step(action) for action in actions[turn:]] == seen[turn:]
    twin.close()


@pytest.mark.parametrize("damage", [{"number": -1}, {"number": 7}, {"tree": 3}, {"log": [["bash ls"]]}])
def test_damaged_snapshots_are_refused(env: Repo, damage: dict[str, Any]) -> None:
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())


def test_tools_show_and_change_files(env: Repo) -> None:
    env.reset(seed=1)
    package = env.task.package
    first = env.step(call("view", path="/app"))[0]
    assert first.startswith("<output>\n.git/\n.gitignore\nREADME.md\n") and f"{package}/" in first
    assert "    1  # " in env.step(call("view", path="README.md", last=1))[0]
    assert f"{package}/__init__.py:1: " in env.step(call("search", text=package, path=package))[0]
    assert env.step(call("search", text="no such text"))[0] == "<output>\nNo line holds it.\n</output>"
    assert "Created notes.txt" in env.step(call("edit", path="notes.txt", old="", new="one\ntwo\n"))[0]
    assert "at line 2" in env.step(call("edit", path="./notes.txt", old="two", new="three"))[0]
    assert "Created " in env.step(call("edit", path="\U0001f600" * 63, old="", new=""))[0]
    assert env.step("<bash>cat notes.txt</bash>")[0] == "<output>\none\nthree\n</output>"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (call("view", path="nowhere"), "there is no 'nowhere'"),
        (call("view", path="../etc/passwd"), "there is no '../etc/passwd'"),
        (call("view", path="README.md", first=900), "lines, and none from 900"),
        (call("edit", path="README.md", old="nothing", new=""), "occurs 0 times"),
        (call("edit", path="README.md", old="", new=""), "is there already"),
        (call("edit", path="a/b.py", old="", new=""), "there is no 'a'"),
        (call("edit", path="..", old="", new=""), "can be created there"),
        (call("edit", path="\U0001f600" * 64, old="", new=""), "can be created there"),
        (call("edit", path="\ud800.py", old="", new=""), "can be created there"),
        (call("edit", path="\udcff.py", old="", new=""), "can be created there"),
        (call("view", path="README.md", first=0), "That is no action"),
        (call("view"), "path missing"),
        (call("bash", command=" "), "the command is empty"),
        ("view README.md", "That is no action"),
    ],
)
def test_other_calls_are_answered_and_change_nothing(env: Repo, given: str, told: str) -> None:
    env.reset(seed=0)
    before = json.loads(env.snapshot())["state"]["tree"]
    assert told in env.step(given)[0]
    assert json.loads(env.snapshot())["state"]["tree"] == before


_PLAY = """
import hashlib
from turngym.envs.tools.repo import Repo
env, told = Repo(), []
for seed in range(2):
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
    assert len(found) == 1 and len(found.pop()) == 65
