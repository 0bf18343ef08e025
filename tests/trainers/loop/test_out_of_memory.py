"""Out of memory: the run stops with a diagnosis that names the settings to change, and continues with them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_runs import TINY, at, diagnosis, numbers

from turngym.__main__ import main
from turngym.errors import RunStopped
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig, SupervisedLearner
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.memory import memory_advice


def hungry(marker: Path, device: str) -> TrainConfig:
    options = {"marker": str(marker)} | ({"device": device} if device != "cpu" else {})
    return replace(TINY, algorithm="hungry:Hungry", algorithm_options={"Hungry": options})


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(hungry(folder.parent / "marker", "cpu"), folder).finished
    return numbers(folder)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_update_without_memory_stops_with_advice_and_goes_on(
    device: str, unbroken: list[dict[str, Any]], tmp_path: Path
) -> None:
    folder, config = tmp_path / "run", hungry(tmp_path / "marker", device)
    with pytest.raises(RunStopped) as caught:
        train(config, folder, watch=at(tmp_path / "marker", 2))
    found = diagnosis(folder)
    assert (found["kind"], found["phase"], found["iteration"], found["lost_iterations"]) == ("memory", "update", 3, 0)
    assert ("can't allocate memory" if device == "cpu" else "CUDA out of memory") in found["what"]
    assert found["advice"] == [
        "continue with --resume --update.gradient-checkpointing: layers keep their input only",
        "continue with --resume --update.max-micro-batch-tokens 1024 (it is 2048)",
        "--lora-rank 32 in a new run: gradients and states of the optimiser for adapters alone",
    ]
    assert all(advice in str(caught.value) for advice in found["advice"])
    words = ["--update.gradient-checkpointing", "--update.max-micro-batch-tokens", "16"]
    assert main(["train", "--resume", "--run-dir", str(folder), *words]) == 0
    stored = RunFolder(folder).config()
    changed = replace(config.update, gradient_checkpointing=True, max_micro_batch_tokens=16)
    assert stored == replace(config, update=changed)
    for whole, record in zip(unbroken, numbers(folder), strict=True):
        assert record["rollout/reward_sum"] == whole["rollout/reward_sum"]
        assert record["train/grad_norm"] == pytest.approx(whole["train/grad_norm"], rel=1e-3, abs=1e-5)


def test_advice_names_what_is_not_done_yet() -> None:
    config = replace(TINY, lora_rank=8, update=replace(TINY.update, gradient_checkpointing=True))
    assert memory_advice(config, "update", "cuda") == (
        "continue with --resume --update.max-micro-batch-tokens 8192 (it is 16384)",
    )
    (fewer, shorter) = memory_advice(TINY, "rollout", "cpu")
    assert "--rollout.num-envs 3 (it is 6)" in fewer
    assert "--rollout.prompt.max-prompt-tokens" in shorter


def test_a_warm_up_without_memory_is_diagnosed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(SupervisedLearner, "run_epoch", lambda self, *_: torch.zeros(10**15))
    config = replace(TINY, env="turngym/NumberLine-v0", env_options={}, warmup=SupervisedConfig(demonstrations=4))
    with pytest.raises(RunStopped, match="busy with the model: loading it, its warm-up"):
        train(config, tmp_path / "run")
    assert diagnosis(tmp_path / "run")["kind"] == "memory"


def test_the_settings_of_an_old_folder_are_changed_in_place(tmp_path: Path) -> None:
    """Only what bounds memory; the defaults of then stay beside it."""
    folder = RunFolder.create(tmp_path / "run", TINY)
    before = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    given = replace(TINY, seed=9, rollout=replace(TINY.rollout, num_envs=2))
    assert folder.resumed_config(given) == replace(TINY, rollout=replace(TINY.rollout, num_envs=2)) == folder.config()
    after = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    before["rollout"]["num_envs"] = 2
    assert after == before
