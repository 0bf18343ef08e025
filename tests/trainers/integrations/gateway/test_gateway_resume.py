"""A run of agent programs that is killed in an iteration continues with the episodes that had finished."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.loop.tasks.agent_journal import EpisodeJournal, EpisodeKey, PlayedEpisode

PROGRAM = """
import json, os, pathlib, sys, time, urllib.request
place, held = pathlib.Path(sys.argv[1]), sys.argv[2]

def post(url, body):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)

messages = [{"role": "user", "content": sys.argv[4]}]
said = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": messages})
with open(place / "begun", "a") as file:
    file.write(sys.argv[3] + "\\n")
while sys.argv[3] == held and (place / "hold").exists():
    time.sleep(0.1)
print(said["choices"][0]["message"]["content"])
"""
HELD = "5"
"""The episode that is not over when the run is killed: the second of the second group of an iteration."""


def run(folder: Path, name: str, place: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "turngym", "train", "--run-dir", str(folder / name)]
    if more:
        return subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL)
    command = f"{sys.executable} {folder}/program.py {place} {HELD} {{seed}} {{task}}"
    words += ["--agent.tasks", str(folder / "tasks.jsonl"), "--agent.judge", f"{folder}/judge.py:length"]
    words += ["--agent.command", command, "--agent.answer", "stdout", "--agent.seconds", "3000", "--no-control"]
    words += ["--model", str(folder / "model"), "--preset", "quickstart", "--warmup.demonstrations", "0"]
    words += ["--rollout.groups", "2", "--rollout.group-size", "3", "--rollout.max-new-tokens", "4"]
    words += ["--iterations", "2", "--algorithm", "grpo", "--update.minibatches", "1", "--checkpoint-every", "1"]
    words += ["--evaluation.episodes", "0", "--evaluation.every", "0"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.integration
def test_a_killed_run_plays_no_finished_episode_again_and_trains_none_twice(tmp_path: Path) -> None:
    small_model().save(tmp_path / "model")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "judge.py").write_text("def length(task, answer):\n    return len(answer) / 10\n")
    (tmp_path / "tasks.jsonl").write_text("\n".join(json.dumps({"prompt": f"go {k}"}) for k in range(9)))
    for name in ("whole", "killed"):
        (tmp_path / f"place-{name}").mkdir()
    assert run(tmp_path, "whole", tmp_path / "place-whole").wait(500) == 0
    place = tmp_path / "place-killed"
    (place / "hold").touch()
    process = run(tmp_path, "killed", place)
    journal = tmp_path / "killed" / "journal"
    wait_for(lambda: sum(path.read_text().count('"key"') for path in journal.glob("*.jsonl")) >= 5, process)
    process.kill()
    process.wait(100)
    (place / "hold").unlink()
    begun = (place / "begun").read_text().split()
    assert sorted(begun) == sorted(map(str, range(6)))
    assert run(tmp_path, "killed", place, "--resume").wait(500) == 0
    again = (place / "begun").read_text().split()[len(begun) :]
    assert again[0] == HELD and len(again) == 1 + 6  # the held episode, and another iteration
    for one, other in zip(metrics(tmp_path / "whole"), metrics(tmp_path / "killed"), strict=True):
        names = [name for name in one if not name.startswith(("time/", "rollout/cache", "rollout/computed"))]
        assert {name: one[name] for name in names} == pytest.approx({name: other[name] for name in names}, abs=1e-6)


def wait_for(is_true: Any, process: subprocess.Popen[bytes]) -> None:
    for _ in range(5000):
        if is_true():
            return
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("it did not come true")


def test_the_journal_forgets_what_checkpoints_hold(tmp_path: Path) -> None:
    def played(number: int) -> PlayedEpisode:
        turn = Turn("a", "b", "c", prompt_ids=(1,), completion_ids=(2, 3), logprobs=(-0.5, -0.25), reward=0.1)
        return PlayedEpisode(Trajectory(EpisodeSpec(number, 1, 0), "X", turns=[turn]), {"kept": 3}, number == 1)

    with EpisodeJournal(tmp_path, 0) as journal:
        journal.add(EpisodeKey(0, 1.0, 0), played(0))
        journal.checkpoint(1, 1)
        journal.add(EpisodeKey(1, 1.0, 1), played(1))
        journal.add(EpisodeKey(1, 0.0, 1), played(1))
    with (tmp_path / "000001.jsonl").open("a") as file:
        file.write('{"group": 1, "key": [1, 1.0, ')  # a kill in the middle of a line
    with EpisodeJournal(tmp_path, 1) as journal:
        assert journal.find(EpisodeKey(0, 1.0, 0)) is None and journal.find(EpisodeKey(1, 1.0, 0)) is None
        found = journal.find(EpisodeKey(1, 1.0, 1))
        assert found == played(1) and journal.find(EpisodeKey(1, 0.0, 1)) is not None
        journal.checkpoint(2, 1)
        assert [path.name for path in sorted(tmp_path.iterdir())] == ["000001.jsonl", "000002.jsonl"]
    with EpisodeJournal(tmp_path, 1) as journal:
        assert journal.find(EpisodeKey(1, 1.0, 1)) is not None
