"""How a run stops on the command line, as users and job schedulers see it."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_runs import diagnosis, numbers
from forked import run_forked

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


def run_train(folder: Path, strike: Callable[[], object], *words: str) -> tuple[int, str, str]:
    """Train in a separate process, strike after two iterations; return the exit status and what it wrote."""
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    command = ["train", "--no-control", *options, "--run-dir", str(folder), *words]
    written = RunFolder.append_metrics

    def append(self: RunFolder, record: Any) -> None:
        written(self, record)
        if record["iteration"] == 1:
            strike()

    def child() -> None:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder.with_suffix(f".{name}"), os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        RunFolder.append_metrics = append  # type: ignore[method-assign]
        status = main(command)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    status = run_forked(child)
    return status, folder.with_suffix(".out").read_text(), folder.with_suffix(".err").read_text()


def test_the_exit_status_and_the_words_tell_of_the_stop(tmp_path: Path) -> None:
    marker, folder = tmp_path / "marker", tmp_path / "run"
    words = ("--env-options", f"marker={marker}", "fault=nan", "max_turns=3")
    status, _, err = run_train(folder, marker.touch, *words)
    assert status == 3, err
    assert "got the reward nan" in err and "nothing is lost" in err and "Traceback" not in err
    assert Path(diagnosis(folder)["checkpoint"]).is_dir()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.integration), signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint_and_the_status_of_an_interrupt(number: int, tmp_path: Path) -> None:
    words = ("--env-options", "max_turns=3", "--iterations", "100000")
    status, out, err = run_train(tmp_path / "run", lambda: os.kill(os.getpid(), number), *words)
    assert status == 130, err
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
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    capsys.readouterr()
    assert main(["train", "--resume", *run]) == 0
    said = capsys.readouterr().out
    assert "is finished, so there is nothing to resume" in said and "--model '" in said and "evaluate" not in said
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
