"""The script that measures training on one GPU runs on a CPU with a tiny model, and says what was not run."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "studies" / "speed" / "gpu.py"


Rows = list[dict[str, object]]


def table(target: Path, *options: str) -> tuple[Rows, Rows]:
    """Return the updates and the whole runs that the script measured."""
    words = [sys.executable, str(SCRIPT), "--out", str(target), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(target.read_text("utf8"))
    return found["arms"], found["runs"]


@pytest.mark.integration
def test_a_tiny_model_is_measured_on_a_cpu(tmp_path: Path) -> None:
    sizes = ["--rows", "2", "--length", "16", "--updates", "1", "--turns", "2", "--new-tokens", "4"]
    sizes += ["--groups", "2", "--group-size", "2", "--runs", "own network, asynchronous"]
    arms, (run,) = table(tmp_path / "gpu.json", "--shapes", "tiny", "--device", "cpu", *sizes)
    assert len(arms) == 3 and {arm["layout"] for arm in arms} == {"packed", "rows"}
    for arm in arms:
        assert arm["status"] == "run", arm
        assert isinstance(arm["tokens_per_second"], float) and arm["tokens_per_second"] > 0
        assert arm["share_of_peak"] is None and arm["memory_gib"] is None
    assert run["status"] == "run" and "time/learner_wait_seconds" in run, run
    assert isinstance(run["sampled_tokens_per_second"], float) and run["sampled_tokens_per_second"] > 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here, so the arms would run")
def test_without_a_gpu_every_arm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "gpu.json"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--out", str(target)])
    monkeypatch.syspath_prepend(SCRIPT.parent)
    runpy.run_path(str(SCRIPT), run_name="__main__")  # it starts no process of its own then
    found = json.loads(target.read_text("utf8"))
    arms, runs = found["arms"], found["runs"]
    assert [arm["shape"] for arm in arms] == ["0.6B", "0.6B", "0.6B", "4B", "4B"]
    assert {run["name"] for run in runs} >= {"colocated with sleep", "served", "asynchronous"}
    assert {each["status"] for each in [*arms, *runs]} == {"not run: there is no GPU here"}
