"""The command line under launchers: torchrun trains as one process does, accelerate launch ends with one message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import warm

pytestmark = pytest.mark.integration

WORDS = [
    *("train", "--env", "turngym/NumberLine-v0", "--env-options", "max_turns=3", "highest=3", "--no-control"),
    *("--iterations", "2", "--max-seconds", "0", "--rollout.groups", "3", "--rollout.group-size", "4"),
    *("--warmup.demonstrations", "8", "--warmup.epochs", "1", "--embedded.hidden-size", "16", "--embedded.layers", "1"),
    *("--evaluation.episodes", "6", "--evaluation.curve-episodes", "6", "--evaluation.every", "2"),
]
LAUNCHERS = {
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    "accelerate": [
        *("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"),
        *("--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"),
    ],
}


def run(launcher: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``turngym`` with these words."""
    command = [sys.executable, *launcher, "-m", "turngym", *words]
    return subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf8").splitlines()]


def test_torchrun_trains_as_one_process_does(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    alone = warm.run("-m", "turngym", *WORDS, "--run-dir", str(one))
    launched = run(LAUNCHERS["torchrun"], *WORDS, "--run-dir", str(two), "--json")
    assert (alone.returncode, launched.returncode) == (0, 0), alone.stderr + launched.stderr
    assert json.loads(launched.stdout)["finished"] is True, "one document: only the first rank speaks"
    assert {path.name for path in two.iterdir()} == {path.name for path in one.iterdir()}
    files = sorted(path.name for path in (one / "evaluations").iterdir())
    assert files and all(
        (two / "evaluations" / name).read_bytes() == (one / "evaluations" / name).read_bytes() for name in files
    )
    for before, after in zip(records(one), records(two), strict=True):
        assert before.keys() | {"time/communication"} == after.keys()
        for name, value in before.items():
            if not name.startswith(("time/", "rollout/prefilled", "rollout/reused")):
                assert after[name] == pytest.approx(value, abs=1e-4, rel=1e-4), name


def test_accelerate_launch_ends_all_ranks_with_the_message(tmp_path: Path) -> None:
    ended = run(LAUNCHERS["accelerate"], *WORDS, "--run-dir", str(tmp_path / "run"), "--device", "cuda:0")
    assert ended.returncode != 0
    assert "2 ranks cannot share the device 'cuda:0'" in ended.stderr
    assert not (tmp_path / "run").exists()
