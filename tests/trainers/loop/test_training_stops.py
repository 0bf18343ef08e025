"""How a run stops on the command line, as users and job schedulers see it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_runs import diagnosis, numbers

from turngym.__main__ import main
from turngym.trainers.records.run_folder import RunFolder

OPTIONS = {
    "env": "injected:test/Injected-v0",
    "algorithm": "grpo",
    "iterations": "40",
    "max-seconds": "0",
    "checkpoint-every": "100",
    "embedded.hidden-size": "16",
    "embedded.layers": "1",
    "embedded.heads": "2",
    "embedded.vocabulary": "300",
    "warmup.demonstrations": "0",
    "rollout.groups": "2",
    "rollout.group-size": "3",
    "rollout.max-new-tokens": "2",
    "evaluation.episodes": "0",
    "evaluation.every": "0",
}


def turngym_train(folder: Path, *words: str) -> "subprocess.Popen[str]":
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "turngym", "train", "--no-control", *options, "--run-dir", str(folder), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
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


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.integration), signal.SIGTERM])
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


@pytest.mark.parametrize("moment", ["warm-up", "last evaluation"])
def test_an_interrupt_outside_of_the_iterations_goes_on_too(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    place = (
        "trainers.loop.sft.SupervisedLearner.run_epoch"
        if moment == "warm-up"
        else "trainers.loop.job._Job.evaluate_all"
    )
    words = ["train", "--no-control", "--env-options", "view=coordinates", "max_turns=3", "max_moves=2"]
    sizes = {**OPTIONS, "warmup.demonstrations": "4", "warmup.epochs": "1", "iterations": "2"}
    del sizes["env"]
    words += [word for name, value in sizes.items() for word in (f"--{name}", value)]
    run = ["--run-dir", str(tmp_path / "my run")]
    with monkeypatch.context() as patch:
        patch.setattr(f"turngym.{place}", interrupt)
        assert main([*words, *run]) == 130
    out = capsys.readouterr().out
    assert f"`turngym train --resume --run-dir '{tmp_path / 'my run'}'` continues" in out
    assert main(["train", "--resume", *run]) == 0
    assert len(numbers(tmp_path / "my run")) == 2 and (tmp_path / "my run" / "done").exists()
