"""A run on two machines with a model each (HSDP), against one copy on both and against one process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import two_machines

from turngym.__main__ import main

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not two_machines.has_namespaces(), reason="needs network namespaces: `unshare` and `ip`"),
]

WORDS = (
    "train --env turngym/NumberLine-v0 --env-options max_turns=3 highest=3 --algorithm ppo --iterations 2 "
    "--rollout.groups 4 --rollout.group-size 3 --rollout.max-new-tokens 2 --warmup.demonstrations 60 "
    "--warmup.epochs 8 --evaluation.episodes 0 --evaluation.every 0 --no-control --checkpoint-every 1 "
    "--embedded.hidden-size 64 --embedded.layers 2 --embedded.heads 2 --update.max-micro-batch-tokens 256 --device cpu"
)


def metrics(run: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf8").splitlines()]
    wall_clock_and_caches = ("time/", "rollout/prefilled", "rollout/reused")
    return [{name: each[name] for name in each if not name.startswith(wall_clock_and_caches)} for each in records]


def test_machines_exchange_gradients_alone_and_one_process_resumes(tmp_path: Path) -> None:
    one, copies, divided = (tmp_path / name for name in ("one", "copies", "divided"))
    assert main([*WORDS.split(), "--run-dir", str(one)]) == 0
    assert all(each["train/grad_norm"] > 1e-3 for each in metrics(one))
    sent = {}
    for run, words in ((copies, []), (divided, ["--update.shard-group", "4"])):
        command = ["-m", "turngym", *WORDS.split(), "--update.sharding", "full", *words, "--run-dir", str(run)]
        ended, sent[run] = two_machines.torchrun(command)
        assert ended.status == 0, ended.errors
        for found, expected in zip(metrics(run), metrics(one), strict=True):
            assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert 0 < 2 * sent[copies] < sent[divided], sent
    before = metrics(copies)
    (copies / "done").unlink()
    shutil.rmtree(copies / "checkpoints" / "000002")
    assert main(["train", "--resume", "--run-dir", str(copies)]) == 0
    assert metrics(copies)[-1] == pytest.approx(before[-1], rel=1e-4, abs=1e-4)
