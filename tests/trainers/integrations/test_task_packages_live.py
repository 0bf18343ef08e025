"""Tasks of Inspect AI and of verifiers as training data, with the packages themselves.

Run by ``make test-integration`` in the environments of these packages.
"""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import task_package_script
from small import small_model

from turngym.__main__ import main

pytestmark = pytest.mark.integration
SUPPORT = Path(task_package_script.__file__).parent
INSPECT = pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect-ai is not installed")
VERIFIERS = pytest.mark.skipif(importlib.util.find_spec("verifiers") is None, reason="verifiers is not installed")
SETTINGS = [
    *("--agent.python", sys.executable, "--algorithm", "grpo", "--iterations", "1", "--no-control"),
    *("--rollout.groups", "1", "--rollout.group-size", "2", "--rollout.max-new-tokens", "8"),
    *("--warmup.demonstrations", "0", "--evaluation.every", "0", "--evaluation.episodes", "0"),
    *("--max-seconds", "0", "--update.minibatches", "1"),
]


@pytest.mark.parametrize(
    ("package", "options", "turns"),
    [
        pytest.param(f"inspect:{SUPPORT}/inspect_letters.py@letters", "log=", 2, marks=INSPECT),
        pytest.param(f"inspect:{SUPPORT}/inspect_letters.py@letters#even.even", "kind=several log=", 2, marks=INSPECT),
        pytest.param("verifiers:verifiers_letters", "taskset.log=", 1, marks=VERIFIERS),
    ],
)
def test_an_iteration_is_trained_on_the_scores_of_the_package(
    package: str, options: str, turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small_model().save(tmp_path / "model")
    log = tmp_path / "scores.txt"
    words = ["train", "--agent.package", package, "--agent.package-options", *f"{options}{log}".split()]
    words += ["--model", str(tmp_path / "model"), "--run-dir", str(tmp_path / "run"), *SETTINGS]
    assert main(words) == 0
    scores = [float(value) for value in _values(log.read_text().splitlines())]
    [line] = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert len(scores) == 2 and record["rollout/faults"] == 0 and record["rollout/turns"] == turns
    assert record["rollout/reward_sum"] == pytest.approx(math.fsum(scores) / 2)
    assert abs(record["train/logprob_gap"]) < 1e-4, "the tokens are the sampled ones"
    assert record["rollout/gateway_share_reencoded"] == 0


PLAY_ALL = """
import sys
from inspect_ai import model as models
from turngym.agents.task_packages.base import inspect_tasks
mock = models.get_model("mockllm/model")
models.get_model = lambda *_, **__: mock
name, log, folder = sys.argv[1:]
for id, _ in inspect_tasks.tasks(name, {"log": log}):
    inspect_tasks.play(name, id, {"log": log}, {"name": "x", "base_url": "", "api_key": "", "folder": folder})
"""


@INSPECT
def test_a_sample_is_played_by_its_whole_id(tmp_path: Path) -> None:
    log = tmp_path / "scores.txt"
    words = [f"{SUPPORT}/inspect_letters.py@patterns", str(log), str(tmp_path)]
    subprocess.run([sys.executable, "-c", PLAY_ALL, *words], check=True)
    played = [line.partition(" ")[0] for line in log.read_text().splitlines()]
    assert played == ["q1", "q?", "a[1]", "patterns:q1"]


def _values(lines: list[str]) -> list[str]:
    """Return the numbers in a log of scores; of several scores the first."""
    return [line.partition(" ")[2].removeprefix("{'even': ").partition(",")[0] for line in lines]


@pytest.mark.parametrize(
    ("package", "said"),
    [
        pytest.param("inspect:no-such-file.py@letters", "there is no file no-such-file.py", marks=INSPECT),
        pytest.param(
            f"inspect:{SUPPORT}/inspect_letters.py@lettres",
            "no task 'lettres'; its tasks are: letters, patterns.",
            marks=INSPECT,
        ),
        pytest.param("verifiers:no-such-taskset", "'no-such-taskset' not found", marks=VERIFIERS),
    ],
)
def test_tasks_that_are_not_there_are_told_in_a_sentence(
    package: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--agent.package", package, "--run-dir", str(tmp_path / "run"), *SETTINGS]
    assert main(words) == 2
    assert said in " ".join(capsys.readouterr().err.split()) and not (tmp_path / "run").exists()


@INSPECT
def test_a_scorer_that_gives_no_number_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small_model().save(tmp_path / "model")
    words = ["train", "--agent.package", f"inspect:{SUPPORT}/inspect_letters.py@letters", "--model"]
    words += [str(tmp_path / "model"), "--agent.package-options", "kind=words", "--run-dir", str(tmp_path / "run")]
    assert main([*words, *SETTINGS]) != 0
    assert "gives 'quite good', and a reward is a number" in " ".join(capsys.readouterr().err.split())
