"""Journeys: Ctrl-C at every stage of a command, which is told in one sentence, and what ``--resume`` makes of it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from journey import ROOT, Answer, finish, start, walk, works

from turngym.terminal.interrupted import INTERRUPTED, STOPPING

PAUSING = '''
"""Guess the Number, which waits once where a test wants to interrupt it."""
import os
import time
from pathlib import Path

from turngym.envs.textgames.guess_the_number import GuessTheNumber


class Pausing(GuessTheNumber):
    def apply_action(self, action):
        split, path, lines = os.environ.get("PAUSE", "none none 0").split()
        waiting, path = Path("waiting"), Path(path)
        if split == self.split and path.exists() and not waiting.exists():
            if int(lines) <= path.read_text("utf8").count("\\n"):
                waiting.touch()
                while not Path("go").exists():
                    time.sleep(0.01)
        return super().apply_action(action)
'''
PAUSING_PLAYER = '''
"""A player that waits once where a test wants to interrupt it."""
import os
import time
from pathlib import Path

from turngym.envs.multiagent.players import Player


class Pausing(Player):
    def begin(self, view, generator):
        self.generator = generator

    def act(self, view):
        path, lines = Path("out/episodes.jsonl"), int(os.environ.get("PAUSE", "1000000"))
        if not Path("waiting").exists() and lines <= (path.read_text("utf8").count("\\n") if path.exists() else 0):
            Path("waiting").touch()
            while not Path("go").exists():
                time.sleep(0.01)
        return str(self.generator.choice(view.info["legal_actions"]))
'''
STAND_IN = """
import time
from pathlib import Path

Path("waiting").touch()
time.sleep(600)
"""


def interrupted(process: "subprocess.Popen[str]", folder: Path) -> Answer:
    """Press Ctrl-C as soon as a command waits, and return what it did."""
    deadline = time.monotonic() + 300
    while not (folder / "waiting").exists():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    (folder / "go").touch()
    answer = finish(process)
    assert answer.status == INTERRUPTED, str(answer)
    return answer


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("numpy", ["train", "--run-dir", "run"]),  # turngym itself is being imported
        ("torch", ["train", "--run-dir", "run"]),
        ("rich", ["eval", "turngym/GuessTheNumber-v0", "--agent", "random", "--out", "out"]),
        ("rich", ["tournament", "turngym/KuhnPoker-v0", "--out", "out"]),
    ],
)
def test_ctrl_c_while_a_command_starts_leaves_nothing_behind(package: str, words: list[str], tmp_path: Path) -> None:
    stand_in, folder = tmp_path / "stand_in", tmp_path / "here"
    (stand_in / package).mkdir(parents=True)
    folder.mkdir()
    (stand_in / package / "__init__.py").write_text(STAND_IN)
    process = start(folder, *words, extra={"PYTHONPATH": f"{stand_in}{os.pathsep}{ROOT}"})
    answer = interrupted(process, folder)
    assert (answer.out, answer.err) == ("", "interrupted\n")
    assert sorted(path.name for path in folder.iterdir()) == ["go", "waiting"]


def timeless(value: Any) -> Any:
    """Return a result without the seconds that its model's answers took."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.startswith("latency")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


EVAL = ("eval", "pausing.py:Pausing", "--agent", "random", "--episodes", "6", "--num-envs", "1", "--out", "out")


@pytest.mark.parametrize("moment", ["test pausing.py 0", "test out/episodes.jsonl 3"])
def test_ctrl_c_in_an_evaluation_keeps_what_was_played(moment: str, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "here"
    for each in (whole, folder):
        each.mkdir()
        (each / "pausing.py").write_text(PAUSING)
    expected = timeless(works(whole, *EVAL, "--json").result)
    answer = interrupted(start(folder, *EVAL, extra={"PAUSE": moment}), folder)
    assert answer.err.splitlines()[-2:] == [
        "out keeps the finished episodes: --resume continues with them.",
        "interrupted",
    ]
    kept = (folder / "out" / "episodes.jsonl").read_text("utf8") if (folder / "out" / "episodes.jsonl").exists() else ""
    assert kept.count("\n") >= int(moment.split()[-1])
    assert timeless(works(folder, *EVAL, "--resume", "--json").result) == expected
    assert (folder / "out" / "episodes.jsonl").read_text("utf8").startswith(kept)


TOURNAMENT: tuple[str, ...] = (
    "tournament",
    "turngym/KuhnPoker-v0",
    "--players",
    "random",
    "mine=player.py:Pausing",
    "--blocks",
    "3",
)
TOURNAMENT += ("--tables", "1", "--out", "out")


@pytest.mark.parametrize("lines", [0, 4])
def test_ctrl_c_in_a_tournament_keeps_the_games_played(lines: int, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "here"
    for each in (whole, folder):
        each.mkdir()
        (each / "player.py").write_text(PAUSING_PLAYER)
    expected = timeless(works(whole, *TOURNAMENT, "--json").result)
    answer = interrupted(start(folder, *TOURNAMENT, extra={"PAUSE": str(lines)}), folder)
    assert (
        answer.lines[-1] == "interrupted: the same command with --resume continues" and answer.err.strip() == STOPPING
    )
    assert timeless(works(folder, *TOURNAMENT, "--resume", "--json").result) == expected
    again = walk(folder, *TOURNAMENT)
    assert again.status == 2 and "--resume" in again.err


TRAIN = {
    "env": "pausing.py:Pausing",
    "algorithm": "grpo",
    "iterations": "3",
    "max-seconds": "0",
    "embedded.hidden-size": "16",
    "embedded.layers": "1",
    "embedded.heads": "2",
    "embedded.vocabulary": "300",
    "warmup.demonstrations": "6",
    "warmup.epochs": "2",
    "rollout.groups": "2",
    "rollout.group-size": "2",
    "rollout.max-new-tokens": "6",
    "evaluation.episodes": "4",
    "evaluation.every": "2",
    "evaluation.curve-episodes": "4",
    "run-dir": "run",
}
MOMENTS = {
    "warm-up": "train run/config.json 0",
    "rollout": "train run/warmup/done 0",
    "between iterations": "dev run/metrics.jsonl 1",
    "last evaluation": "test run/model/turngym.json 0",
}


def trained(folder: Path) -> dict[str, Any]:
    """Return every number of a run but the times."""
    run = folder / "run"
    lines = (run / "metrics.jsonl").read_text("utf8").splitlines()
    records = [{k: v for k, v in json.loads(line).items() if not k.startswith("time/")} for line in lines]
    found: dict[str, Any] = {"metrics": [{k: v for k, v in each.items() if "seconds" not in k} for each in records]}
    for path in sorted((run / "evaluations").glob("*.json")):
        found[path.name] = json.loads(path.read_text("utf8"))
    return found


def train_words() -> list[str]:
    return ["train", "--no-control", *[word for name, value in TRAIN.items() for word in (f"--{name}", value)]]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "pausing.py").write_text(PAUSING)
    works(folder, *train_words())
    return trained(folder)


@pytest.mark.integration
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_in_a_training_loses_nothing_and_changes_no_number(
    moment: str, tmp_path: Path, uninterrupted: dict[str, Any]
) -> None:
    (tmp_path / "pausing.py").write_text(PAUSING)
    answer = interrupted(start(tmp_path, *train_words(), extra={"PAUSE": MOMENTS[moment]}), tmp_path)
    assert answer.lines[-1] == "interrupted: `turngym train --resume --run-dir run` continues", str(answer)
    kept = (tmp_path / "run" / "metrics.jsonl").read_text("utf8") if moment not in ("warm-up",) else ""
    resumed = works(tmp_path, "train", "--resume", "--run-dir", "run")
    assert "Evaluate the model with:" in resumed.out
    assert (tmp_path / "run" / "metrics.jsonl").read_text("utf8").startswith(kept)
    assert trained(tmp_path) == uninterrupted
