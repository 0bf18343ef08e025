"""Faults injected into real runs: each continues, or stops cleanly with a checkpoint and a diagnosis, nothing lost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_runs import TINY, assert_goes_on_to, at, diagnosis, faulty, numbers

from turngym.agents.models.loading import LanguageModel
from turngym.errors import RunStopped
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.job import train
from turngym.trainers.settings.guards import GuardConfig


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TINY, folder).finished
    assert not (folder / "diagnosis.json").exists() and not (folder / ".reserve").exists()
    return numbers(folder)


def test_a_reward_that_is_no_number_stops_before_it_does_harm(whole: list[dict[str, Any]], tmp_path: Path) -> None:
    config, folder = faulty(tmp_path / "marker", "inf"), tmp_path / "run"
    with pytest.raises(RunStopped) as caught:
        train(config, folder, watch=at(tmp_path / "marker", 2))
    found = diagnosis(folder)
    assert (found["kind"], found["phase"], found["iteration"], found["lost_iterations"]) == ("reward", "rollout", 3, 0)
    assert found["checkpoint"] == str(folder / "checkpoints" / "000003"), "the three whole iterations are kept"
    assert found["where"]["reward"] == "inf" and found["where"]["turn"] == 0
    assert found["where"]["seed"] > 0 and found["where"]["observation"].startswith("count 0")
    assert [record["iteration"] for record in found["last_metrics"]] == [0, 1, 2][-len(found["last_metrics"]) :]
    words = str(caught.value)
    assert "got the reward inf at turn 0" in words and "--guards.bad-reward drop" in words
    assert "training stopped in iteration 4, while it was busy with rollouts" in words and "nothing is lost" in words
    assert_goes_on_to(whole, config, folder)


def test_a_reward_that_is_no_number_can_be_dropped_and_counted(tmp_path: Path) -> None:
    config = replace(faulty(tmp_path / "marker", "nan"), guards=GuardConfig(bad_reward="drop"))
    assert train(config, tmp_path / "run", watch=at(tmp_path / "marker", 1)).finished
    assert [record["rollout/faults"] for record in numbers(tmp_path / "run")] == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(("fault", "backend"), [("raise", "sync"), ("kill", "process")])
def test_a_broken_environment_or_killed_worker_costs_its_episode_only(fault: str, backend: str, tmp_path: Path) -> None:
    config = faulty(tmp_path / "marker", fault)
    config = replace(
        config, rollout=replace(config.rollout, backend=backend, num_workers=2 if backend != "sync" else 0)
    )
    assert train(config, tmp_path / "run", watch=at(tmp_path / "marker", 1)).finished
    records = numbers(tmp_path / "run")
    assert [record["rollout/faults"] for record in records] == [0, 0, 1, 0, 0]
    assert [record["rollout/episodes"] for record in records] == [6, 6, 5, 6, 6]
    assert all(record["train/grad_norm"] >= 0 for record in records)


def test_environments_that_always_break_stop_the_run(tmp_path: Path) -> None:
    config = replace(faulty(tmp_path / "marker", "raise", always=True), iterations=20)
    with pytest.raises(RunStopped, match="every episode of 3 iterations in a row broke"):
        train(config, tmp_path / "run", watch=at(tmp_path / "marker", 1))
    found = diagnosis(tmp_path / "run")
    assert found["kind"] == "faults" and found["iteration"] == 5 and found["lost_iterations"] == 0
    assert [record["rollout/episodes"] for record in numbers(tmp_path / "run")] == [6, 6, 0, 0, 0]


def test_an_interrupt_in_mid_iteration_is_diagnosed_and_resumed(whole: list[dict[str, Any]], tmp_path: Path) -> None:
    config, folder = faulty(tmp_path / "marker", "interrupt"), tmp_path / "run"
    assert not train(config, folder, watch=at(tmp_path / "marker", 0)).finished
    found = diagnosis(folder)
    assert (found["kind"], found["iteration"], found["lost_iterations"]) == ("interrupt", 2, 0)
    assert found["advice"] == ["continue with --resume"]
    assert_goes_on_to(whole, config, folder)


def test_weights_that_were_ruined_are_never_saved(tmp_path: Path) -> None:
    def ruin(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 2:
            next(model.network.parameters()).data.fill_(float("nan"))

    with pytest.raises(RunStopped):
        train(TINY, tmp_path / "run", watch=ruin)
    found = diagnosis(tmp_path / "run")
    assert found["checkpoint"].endswith("000002") and found["lost_iterations"] == 1
    assert "a checkpoint of now could not be written: a weight is not finite" in found["what"]
    assert [path.name for path in all_checkpoints(tmp_path / "run" / "checkpoints")] == ["000002"]
