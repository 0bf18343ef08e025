"""A run on two ranks with a sharded model: exported, and gone on with by one process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import rank_processes
import torch
from safetensors.torch import load_file

from turngym.__main__ import main

pytestmark = pytest.mark.integration

WORDS = (
    "--env turngym/NumberLine-v0 --algorithm ppo --iterations 2 --rollout.groups 3 --rollout.group-size 3 "
    "--rollout.max-new-tokens 2 --warmup.demonstrations 8 --warmup.epochs 1 --evaluation.episodes 0 "
    "--evaluation.every 0 --no-control --checkpoint-every 1 --update.sharding full --embedded.hidden-size 32 "
    "--embedded.layers 2 --embedded.heads 2 --device cpu --track none"
)


def last_metrics(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "metrics.jsonl").read_text("utf8").splitlines()[-1])
    return {name: value for name, value in content.items() if not name.startswith("time/")}


def test_a_sharded_run_is_exported_and_one_process_goes_on_with_it(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    ended = rank_processes.run(["-m", "turngym", "train", *WORDS.split(), "--run-dir", str(run)], timeout=600)
    assert [each.status for each in ended] == [0, 0], ended
    assert len(list((run / "checkpoints" / "000002" / "policy").iterdir())) == 2
    assert main(["export-model", str(run), "--to", str(tmp_path / "exported")]) == 0
    exported, trained = (load_file(each / "model.safetensors") for each in (tmp_path / "exported", run / "model"))
    assert all(torch.equal(exported[name], each) for name, each in trained.items())
    shutil.copytree(run, other)
    shutil.rmtree(other / "checkpoints" / "000002")
    (other / "done").unlink()
    assert main(["train", "--resume", "--run-dir", str(other)]) == 0
    assert (other / "checkpoints" / "000002" / "policy.safetensors").is_file()
    expected = last_metrics(run)
    assert last_metrics(other) == pytest.approx(expected, rel=1e-4, abs=1e-5)
