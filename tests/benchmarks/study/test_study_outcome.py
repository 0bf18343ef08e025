"""What runs of a study say, on figures made up here; and a study that is run, killed, resumed and changed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from rich.console import Console
from test_cli_train import TINY_WORDS

from turngym.__main__ import main
from turngym.benchmarks.cli.study import _tables
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.statistics.power import FEWEST_PAIRS, interval, is_known, seeds_needed
from turngym.benchmarks.study.outcome import read_outcome
from turngym.benchmarks.study.plan import Job, Plan, plan_of, read_plan
from turngym.benchmarks.study.queue import Queue, processor_file, processor_seconds, require_planned
from turngym.errors import ConfigError
from turngym.system.locks import FolderLock
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

PLAN = plan_of("mine", {"seeds": 4, "arms": {"a": "", "b": ""}, "claims": ["a > b"], "effect": 0.1})


def finished(folder: Path, plan: Plan, values: dict[str, list[float]]) -> None:
    """Write folders as finished runs leave them."""
    for arm, each in values.items():
        for seed, value in enumerate(each):
            run = folder / f"{arm}-seed{seed}"
            (run / "evaluations").mkdir(parents=True, exist_ok=True)
            (run / "evaluations" / "final-greedy.json").write_text(
                json.dumps({"success": {"value": value}, "faults": 0})
            )
            (run / "done").touch()


def test_arms_and_claims_are_compared_in_pairs(tmp_path: Path) -> None:
    finished(tmp_path, PLAN, {"a": [0.5, 0.6, 0.7, 0.8], "b": [0.3, 0.4, 0.49, 0.6]})
    found = read_outcome(PLAN, tmp_path)
    assert found.arms["a"].mean == pytest.approx(0.65)
    (claim,) = found.claims
    assert claim.interval is not None and claim.power is not None
    assert claim.interval.mean == pytest.approx(0.2025) and claim.interval.low > 0.19
    assert claim.verdict == "holds" and claim.seeds == 4 and claim.power > 0.99 and claim.needed == FEWEST_PAIRS
    assert json.loads(json.dumps(found.as_json()))["claims"][0]["claim"] == "a > b"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_run_without_a_number_is_named(value: float | None, tmp_path: Path) -> None:
    finished(tmp_path, PLAN, {"a": [0.5, 0.6, value], "b": [0.3, 0.4, 0.49]})  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="the run a-seed2 has no success in the evaluation 'final-greedy'"):
        read_outcome(PLAN, tmp_path)


def test_values_that_are_no_numbers_have_no_interval() -> None:
    """An AttributeError came out of the standard library."""
    for value in (float("nan"), float("inf")):
        assert not is_known([0.1, value, 0.2])
        with pytest.raises(ValueError, match="two finite values"):
            interval([0.1, value, 0.2])


@pytest.mark.parametrize("deviation", [0.0, 1e-9, 0.001])
def test_no_fewer_pairs_are_asked_for_than_an_interval_needs(deviation: float) -> None:
    assert seeds_needed(0.5, deviation) == FEWEST_PAIRS


def test_an_arm_is_compared_with_itself_in_another_evaluation(tmp_path: Path) -> None:
    plan = plan_of("mine", {"seeds": 2, "arms": {"a": ""}, "claims": ["a > a:control-greedy"]})
    finished(tmp_path, plan, {"a": [0.5, 0.6]})
    for seed, value in enumerate([0.4, 0.49]):
        content = json.dumps({"success": {"value": value}})
        (tmp_path / f"a-seed{seed}" / "evaluations" / "control-greedy.json").write_text(content)
    (claim,) = read_outcome(plan, tmp_path).claims
    assert claim.difference == pytest.approx(0.105) and str(claim.claim) == "a > a:control-greedy"


def test_what_is_not_finished_is_left_out(tmp_path: Path) -> None:
    finished(tmp_path, PLAN, {"a": [0.5, 0.6, 0.8], "b": [0.5]})
    found = read_outcome(PLAN, tmp_path)
    (claim,) = found.claims
    assert claim.seeds == 1 and claim.verdict == "undecided" and claim.interval is None
    assert found.arms["b"].interval is None and found.arms["a"].interval is not None
    assert read_outcome(PLAN, tmp_path / "nothing").arms == {} and read_outcome(PLAN, tmp_path / "nothing").claims == ()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ([0.5, 0.6], [0.5, 0.6]),
        ([0.9, 0.95], [0.1, 0.2]),
        ([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]),
        ([0.5, 0.6, 0.7], [0.4, 0.5, 0.6]),
        ([0.9], [0.1]),
    ],
    ids=["two equal pairs", "two pairs", "all solved", "one difference", "one pair"],
)
def test_few_pairs_or_equal_differences_decide_nothing(
    better: list[float], worse: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path, PLAN, {"a": better, "b": worse})
    (claim,) = read_outcome(PLAN, tmp_path).claims
    assert (claim.interval, claim.power, claim.needed, claim.verdict) == (None, None, None, "undecided")
    for table in _tables(read_outcome(PLAN, tmp_path)):
        Console(width=200).print(table)
    shown = capsys.readouterr().out
    assert "undecided" in shown and "100 %" not in shown and "fewer than 3 pairs, or all differences are" in shown


@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6))
def test_intervals_of_shares_are_shares(pairs: list[tuple[float, float]]) -> None:
    with TemporaryDirectory() as folder:
        plan = plan_of("mine", {"seeds": len(pairs), "arms": {"a": "", "b": ""}, "claims": ["a > b"]})
        finished(Path(folder), plan, {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
        found = read_outcome(plan, Path(folder))
    for arm in found.arms.values():
        assert arm.interval is None or 0 <= arm.interval.low <= arm.interval.mean <= arm.interval.high <= 1
    for claim in found.claims:
        assert claim.interval is None or -1 <= claim.interval.low <= claim.interval.high <= 1


@pytest.mark.parametrize(
    ("key", "message"), [("metric", "no metric 'succes'"), ("evaluation", "no evaluation 'succes'")]
)
def test_a_measure_that_runs_do_not_have_is_named(key: str, message: str, tmp_path: Path) -> None:
    finished(tmp_path, PLAN, {"a": [0.5, 0.6]})
    plan = plan_of("mine", {"arms": {"a": ""}, key: "succes"})
    with pytest.raises(ConfigError, match=message):
        read_outcome(plan, tmp_path)


def test_a_run_is_held_against_the_settings_of_its_own_seed(tmp_path: Path) -> None:
    plan = plan_of("mine", {"seeds": 2, "common": COMMON, "arms": {"a": "--algorithm ppo --model warm-seed{seed}"}})

    def wanted(job: Job) -> TrainConfig:
        return parse_train(plan.options(job))[0]

    for job in plan.jobs:
        RunFolder.create(tmp_path / job.name, wanted(job))
    require_planned(plan, tmp_path, wanted)
    with pytest.raises(ConfigError, match=r"its model is 'warm-seed1' and not 'warm-seed0'"):
        require_planned(plan, tmp_path, lambda job: replace(wanted(Job(job.arm, 0)), seed=job.seed))


def write_plan(folder: Path, *, seeds: int = 2, **arms: str) -> Path:
    path = folder / "small.toml"
    lines = [f'{name} = "{options}"' for name, options in arms.items()]
    head = f'seeds = {seeds}\ncommon = "--env turngym/FrozenLake-v0 {COMMON}"\nclaims = ["one > two"]\n[arms]\n'
    path.write_text(head + "\n".join(lines) + "\n")
    return path


COMMON = TINY_WORDS.replace("view=coordinates max_turns=4 max_moves=2", "max_turns=4")


@pytest.mark.integration
def test_a_study_is_interrupted_resumed_and_not_mixed_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = write_plan(tmp_path, seeds=1, one="--algorithm ppo", two="--algorithm grpo")
    command = [sys.executable, "-m", "turngym", "study", "run", str(plan)]
    folder = tmp_path / "runs" / "studies" / "small"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (folder / "one-seed0" / "done").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 130 and f"one-seed0: running, output in {folder.relative_to(tmp_path)}" in said
    kept = os.stat(folder / "one-seed0" / "done").st_mtime_ns
    assert main(["study", "run", str(plan), "--json"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert [len(arm["values"]) for arm in found["arms"].values()] == [1, 1] and found["claims"][0]["seeds"] == 1
    assert os.stat(folder / "one-seed0" / "done").st_mtime_ns == kept, "a finished run is kept"
    assert all(0 < seconds < 600 for arm in found["arms"].values() for seconds in arm["processor_seconds"].values())
    assert all(len(arm["processor_seconds"]) == 1 for arm in found["arms"].values())
    assert (folder / "results.json").is_file() and (folder / "curves.png").is_file()
    write_plan(tmp_path, one="--algorithm ppo --ppo.entropy-coef 0.5", two="--algorithm grpo")
    assert main(["study", "run", str(plan)]) == 2
    assert "one-seed0 was made with other settings than the arm 'one' has now" in capfd.readouterr().err


@pytest.mark.integration
def test_a_run_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = write_plan(tmp_path, seeds=1, one="--algorithm ppo --model absent", two="--algorithm grpo")
    assert main(["study", "run", str(plan), "--arms", "two", "--at-once", "2"]) == 0
    assert not list((tmp_path / "runs" / "studies" / "small").glob("one-*")) and "1/1" in capfd.readouterr().out
    assert main(["study", "run", str(plan), "--at-once", "2"]) == 1
    out, err = capfd.readouterr()
    assert "one-seed0 failed (2), see runs/studies/small/one-seed0.log: " in err and "1/1" in out


@pytest.mark.integration
def test_two_processes_share_a_study_and_one_of_them_is_killed(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, seeds=1, one="--algorithm ppo", two="--algorithm grpo")
    command = [sys.executable, "-m", "turngym", "study", "run", str(plan)]
    folder = tmp_path / "runs" / "studies" / "small"
    first = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not (folder / "one-seed0" / "config.json").exists():
        assert first.poll() is None
        time.sleep(0.05)
    second = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not (folder / "two-seed0" / "config.json").exists():
        assert first.poll() is None and second.poll() is None
        time.sleep(0.05)
    first.kill()  # its run continues, and is waited for
    first.wait()
    out, err = second.communicate(timeout=900)
    assert second.returncode == 0, err
    assert out.count("1/1") == 2 and "failed" not in err
    assert len(list(folder.glob("*/done"))) == 2


def trains(study: int) -> bool:
    """Return whether a study has started a run."""
    for file in Path(f"/proc/{study}/task").glob("*/children"):
        with suppress(OSError):  # a thread or a child that has ended
            if any("train" in Path(f"/proc/{child}/cmdline").read_text() for child in file.read_text().split()):
                return True
    return False


@pytest.mark.integration
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children of a process are found in /proc")
def test_a_run_that_was_starting_when_its_study_was_killed_is_waited_for(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, seeds=1, one="--algorithm ppo", two="--algorithm grpo")
    command = [sys.executable, "-m", "turngym", "study", "run", str(plan), "--arms", "one"]
    first = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not trains(first.pid):
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()  # its run has been started, and has no folder yet
    first.wait()
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert second.returncode == 0 and "failed" not in second.stderr, second.stderr
    assert "one-seed0: finished by another process" in second.stderr


def test_a_run_of_another_process_is_waited_for_and_not_repeated(tmp_path: Path) -> None:
    plan = plan_of("mine", {"seeds": 2, "arms": {"one": ""}})
    folders = [tmp_path / ".locks" / job.name for job in plan.jobs]
    for folder in folders:
        folder.mkdir(parents=True)
    locks = [FolderLock(folder, "run of a study") for folder in folders]

    def finish(left: Sequence[Job]) -> None:
        assert [job.name for job in left] == ["one-seed0", "one-seed1"]
        finished(tmp_path, plan, {"one": [0.5, 0.6]})
        for lock in locks:
            lock.release()

    ended = Queue(plan, tmp_path, 1).run(lambda each: None, finish)
    assert [(each.job.name, each.status, each.is_elsewhere) for each in ended] == [
        ("one-seed0", 0, True),
        ("one-seed1", 0, True),
    ]
    assert not list(tmp_path.glob("*.log")), "nothing was started"


def test_arms_are_chosen_by_name_and_only_to_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = str(write_plan(tmp_path, one="--algorithm ppo", two="--algorithm grpo"))
    assert main(["study", "run", plan, "--arms", "twoo"]) == 2
    assert "the plan has no arm 'twoo'. Did you mean 'two'?" in " ".join(capfd.readouterr().err.split())
    assert main(["study", "show", plan, "--arms", "two"]) == 2
    assert "leave it out of `study show`" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"seconds": NaN}', '{"seconds": -1}', '{"seconds": "x"}', "[" * 100_000]
)
def test_a_damaged_time_counts_as_none(tmp_path: Path, content: str) -> None:
    processor_file(tmp_path / "run").write_text('{"seconds": 2.5}')
    assert processor_seconds(tmp_path / "run") == 2.5
    processor_file(tmp_path / "run").write_text(content)
    assert processor_seconds(tmp_path / "run") == 0.0


def test_claims_are_not_broken_where_the_output_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    claim = "two:final-greedy > one:final-greedy"
    path = write_plan(tmp_path, one="--algorithm ppo", two="--algorithm grpo")
    path.write_text(path.read_text("utf8").replace("one > two", claim), "utf8")
    plan, folder = read_plan(path), tmp_path / "runs" / "studies" / "small"
    for job in plan.jobs:
        RunFolder.create(folder / job.name, parse_train(plan.options(job))[0])
    finished(folder, plan, {"one": [0.5, 0.6], "two": [0.7, 0.9]})
    assert main(["study", "show", str(path)]) == 0
    assert claim in capfd.readouterr().out
