"""A run on two ranks with a sharded model: exported, gone on with by one process, and on a full disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import rank_processes
import torch
from safetensors.torch import load_file
from small_disks import small_disk

from turngym.__main__ import main

pytestmark = pytest.mark.integration
__all__ = ["small_disk"]  # a fixture

SUPPORT = str(Path(rank_processes.__file__).parent)
WORDS = (
    "--env turngym/NumberLine-v0 --algorithm ppo --iterations 2 --rollout.groups 3 --rollout.group-size 3 "
    "--rollout.max-new-tokens 2 --warmup.demonstrations 8 --warmup.epochs 1 --evaluation.episodes 0 "
    "--evaluation.every 0 --no-control --checkpoint-every 1 --update.sharding full --embedded.hidden-size 32 "
    "--embedded.layers 2 --embedded.heads 2 --device cpu"
)


def last_metrics(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "metrics.jsonl").read_text("utf8").splitlines()[-1])
    return {name: value for name, value in content.items() if not name.startswith("time/")}


def test_a_sharded_run_is_exported_and_one_process_goes_on_with_it(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    ended = rank_processes.run(["-m", "turngym", "train", *WORDS.split(), "--run-dir", str(run)], timeout=600)
    assert [each.status for each in ended] == [0, 0], ended
    assert len(list((run / "checkpoints" / "000002" / "policy").iterdir())) == 2
    assert main(["export-model", str(run), "--out", str(tmp_path / "exported")]) == 0
    exported, trained = (load_file(each / "model.safetensors") for each in (tmp_path / "exported", run / "model"))
    assert all(torch.equal(exported[name], each) for name, each in trained.items())
    shutil.copytree(run, other)
    shutil.rmtree(other / "checkpoints" / "000002")
    (other / "done").unlink()
    assert main(["train", "--resume", "--run-dir", str(other)]) == 0
    assert (other / "checkpoints" / "000002" / "policy.safetensors").is_file()
    expected = last_metrics(run)
    assert last_metrics(other) == pytest.approx(expected, rel=1e-4, abs=1e-5)


FILLED = """
import os, sys
from pathlib import Path
from small_disks import fill
from turngym.benchmarks.cli.train import parse_train
from turngym.trainers.loop.job import train

disk = Path(sys.argv[1])

def watch(model, record):
    if record["iteration"] == 2 and os.environ["RANK"] == "0":
        (disk / "run" / "checkpoints" / "000001" / "state.json").unlink()
        fill(disk)

assert train(parse_train(sys.argv[2:])[0], disk / "run", watch=watch).finished
"""


def test_on_a_full_disk_an_older_checkpoint_that_is_smaller_makes_room(small_disk: Path) -> None:
    tiny = "--iterations 3 --algorithm grpo --embedded.hidden-size 16 --embedded.layers 1 --embedded.vocabulary 300"
    words = [*WORDS.split(), *tiny.split()]
    ended = rank_processes.run(["-c", FILLED, str(small_disk), *words], timeout=600, PYTHONPATH=SUPPORT)
    assert [each.status for each in ended] == [0, 0], ended
    assert [each.name for each in sorted((small_disk / "run" / "checkpoints").iterdir())] == ["000002", "000003"]
    assert len((small_disk / "run" / "metrics.jsonl").read_text("utf8").splitlines()) == 3
