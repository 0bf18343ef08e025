"""Faults injected into real runs: each goes on, or stops cleanly with a checkpoint and a diagnosis, and loses nothing."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import injected
import pytest
import torch

from turngym.agents.embedded import EmbeddedConfig
from turngym.agents.models import LanguageModel
from turngym.errors import RunStopped
from turngym.trainers.checkpoint import all_checkpoints
from turngym.trainers.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.guards import GuardConfig
from turngym.trainers.job import train
from turngym.trainers.learner import UpdateConfig
from turngym.trainers.run_folder import RunFolder
from turngym.trainers.sft import SupervisedConfig

ITERATIONS = 5
TINY = TrainConfig(
    env="test/Injected-v0",
    env_options={"max_turns": 3},
    algorithm="grpo",
    iterations=ITERATIONS,
    max_seconds=0,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=0),
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=4),
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(0, 0, 1),
)
Watch = Callable[[LanguageModel, Mapping[str, Any]], None]


def at(marker: Path, iteration: int) -> Watch:
    """Put the marker down at the end of an iteration, so that the next one breaks."""

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == iteration:
            marker.touch()

    return watch


def faulty(marker: Path, fault: str, **options: Any) -> TrainConfig:
    assert fault in injected.FAULTS
    return replace(TINY, env_options={"max_turns": 3, "marker": str(marker), "fault": fault, **options})


def numbers(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if not k.startswith("time/")} for record in RunFolder(folder).metrics()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TINY, folder).finished
    assert not (folder / "diagnosis.json").exists() and not (folder / ".reserve").exists()
    return numbers(folder)


def diagnosis(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "diagnosis.json").read_text("utf8"))
    assert isinstance(found, dict)
    return found


def assert_goes_on_to(whole: list[dict[str, Any]], config: TrainConfig, folder: Path) -> None:
    """Every line of the metrics is whole, and the resumed run ends with the numbers of one that never broke."""
    assert [record["iteration"] for record in numbers(folder)] == list(range(len(numbers(folder))))
    assert not [path for path in folder.rglob("*.tmp")]
    assert train(config, folder, resume=True).finished
    assert numbers(folder) == whole
    assert not (folder / "diagnosis.json").exists()


@pytest.mark.parametrize("fault", ["nan", "inf"])
def test_a_reward_that_is_no_number_stops_before_it_does_harm(
    fault: str, whole: list[dict[str, Any]], tmp_path: Path
) -> None:
    config, folder = faulty(tmp_path / "marker", fault), tmp_path / "run"
    with pytest.raises(RunStopped) as caught:
        train(config, folder, watch=at(tmp_path / "marker", 2))
    found = diagnosis(folder)
    assert (found["kind"], found["phase"], found["iteration"], found["lost_iterations"]) == ("reward", "rollout", 3, 0)
    assert found["checkpoint"] == str(folder / "checkpoints" / "000003"), "the three whole iterations are kept"
    assert found["where"]["reward"] == fault and found["where"]["turn"] == 0
    assert found["where"]["seed"] > 0 and found["where"]["observation"].startswith("count 0")
    assert [record["iteration"] for record in found["last_metrics"]] == [0, 1, 2][-len(found["last_metrics"]) :]
    words = str(caught.value)
    assert f"got the reward {fault} at turn 0" in words and "--guards.bad-reward drop" in words
    assert "training stopped in iteration 4, while it was busy with rollouts" in words and "nothing is lost" in words
    assert_goes_on_to(whole, config, folder)


def test_a_reward_that_is_no_number_can_be_dropped_and_counted(tmp_path: Path) -> None:
    config = replace(faulty(tmp_path / "marker", "nan"), guards=GuardConfig(bad_reward="drop"))
    assert train(config, tmp_path / "run", watch=at(tmp_path / "marker", 1)).finished
    assert [record["rollout/faults"] for record in numbers(tmp_path / "run")] == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(("fault", "backend"), [("raise", "sync"), ("raise", "process"), ("kill", "process")])
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
    assert found["advice"] == ["go on with --resume"]
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


# A full disk, a real one


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command for a small disk")
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Write until there is no room left at all."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


@pytest.mark.parametrize("iteration", [0, 1, 4])
def test_a_full_disk_stops_the_run_and_nothing_is_half_written(
    iteration: int, whole: list[dict[str, Any]], small_disk: Path
) -> None:
    """Before the first checkpoint, right before one, and at the end of the run."""

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == iteration:
            fill(small_disk)

    folder = small_disk / "run"
    with pytest.raises(RunStopped, match="make room on the disk") as caught:
        train(TINY, folder, watch=watch)
    assert "No space left on device" in str(caught.value) or "os error 28" in str(caught.value)
    found = diagnosis(folder)
    assert found["kind"] == "disk"
    kept = all_checkpoints(folder / "checkpoints")
    assert found["checkpoint"] == (str(kept[-1]) if kept else "")
    for path in kept:
        assert (path / "policy.safetensors").stat().st_size > 1000 and json.loads((path / "state.json").read_text())
    (small_disk / "ballast").unlink()
    assert_goes_on_to(whole, TINY, folder)


LIMITED = """
import resource, sys
from pathlib import Path
import injected
from test_training_faults import TINY
from turngym.errors import RunStopped
from turngym.trainers.job import train

def limit(model, record):
    if record["iteration"] == 2:
        size = (Path(sys.argv[1]) / "metrics.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))

try:
    train(TINY, Path(sys.argv[1]), watch=limit)
except RunStopped as stopped:
    print(stopped)
    sys.exit(3)
"""


def test_a_line_that_does_not_fit_is_not_written_by_halves(whole: list[dict[str, Any]], tmp_path: Path) -> None:
    """A limit on the size of files breaks the next line of the metrics after its first 100 bytes."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stdout and resource.RLIMIT_FSIZE >= 0
    assert (tmp_path / "run" / "metrics.jsonl").read_text().endswith("}\n")
    assert [record["iteration"] for record in numbers(tmp_path / "run")] == [0, 1, 2]
    assert_goes_on_to(whole, TINY, tmp_path / "run")


# The command line, as users and job schedulers see it

OPTIONS = (
    "--env injected:test/Injected-v0 --algorithm grpo --iterations 40 --max-seconds 0 --checkpoint-every 100"
    " --no-control --embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 300"
    " --warmup.demonstrations 0 --rollout.groups 2 --rollout.group-size 3 --evaluation.episodes 0 --evaluation.every 0"
).split()


def turngym_train(folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "turngym", "train", *OPTIONS, "--run-dir", str(folder), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for_metrics(process: "subprocess.Popen[str]", folder: Path) -> None:
    deadline = time.monotonic() + 240
    while len(RunFolder(folder).metrics()) < 2:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)


def test_the_exit_status_and_the_words_tell_of_the_stop(tmp_path: Path) -> None:
    marker, folder = tmp_path / "marker", tmp_path / "run"
    process = turngym_train(folder, "--env-options", f"marker={marker}", "fault=nan", "max_turns=3")
    wait_for_metrics(process, folder)
    marker.touch()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 3
    assert "got the reward nan" in err and "nothing is lost" in err and "Traceback" not in err
    assert Path(diagnosis(folder)["checkpoint"]).is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint_and_the_status_of_an_interrupt(number: int, tmp_path: Path) -> None:
    process = turngym_train(tmp_path / "run", "--env-options", "max_turns=3", "--iterations", "100000")
    wait_for_metrics(process, tmp_path / "run")
    process.send_signal(number)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "train --resume --run-dir" in out
    found = diagnosis(tmp_path / "run")
    assert found["kind"] == "interrupt" and found["lost_iterations"] == 0
    assert Path(found["checkpoint"]).name == f"{len(numbers(tmp_path / 'run')):06d}"


torch.set_num_threads(1)
