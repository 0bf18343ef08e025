"""Hostile submissions: forged successes are found, and sizes are bounded before any work begins."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from submissions import changed, play, rows_of, write_rows
from tampering import CAREFUL, ENV, Files

from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks.verification.replay import replay_sample
from turngym.benchmarks.verification.verify import verify, verify_submission
from turngym.storage.bounded import LARGEST_LINES, LONGEST_LINE, MOST_EPISODES
from turngym.system.limited import LimitedProcess


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "true"
    return play(path, "random", "--seed", "5", "--baselines", episodes=20)


def test_one_forged_success_of_twenty_is_always_found(true: Path, tmp_path: Path) -> None:
    files = Files(true, tmp_path / "forged")
    CAREFUL["replay-success"](files)
    files.fit()
    path = files.save()
    assert verify(path, replay=0).is_accepted, "nothing else shows it"
    labels = [verify(path, seed=seed).label for seed in range(8)]
    assert labels == ["rejected"] * 8


def test_where_time_is_short_the_label_tells_the_share(true: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submission = load_submission(true)
    solved = sum(row["success"] for row in submission.episodes)
    assert solved > 1
    again = replay_sample(submission, 0.05, 0, seconds=0.0)
    assert again.claims[ENV][0] == solved and again.claims[ENV][1] <= 1 and again.played[ENV] == 1
    monkeypatch.setattr("turngym.benchmarks.verification.replay.SECONDS", 0.0)
    found = verify(true, seed=0)
    assert found.label == "partly replayed" and f"of {solved} claimed episodes" in " ".join(found.notes)
    assert "unnoticed would have gone 1 forged" in " ".join(found.notes)


def put(key: str, value: Any) -> Any:
    return lambda table: table.update({key: value})


def put_seeds(config: Any) -> None:
    config["environments"][0]["seeds"] = list(range(1_000_000))


HOSTILE: dict[str, dict[str, Any]] = {
    "repeats of a milliard": {"config": put("repeats", 10**9)},
    "a million seeds": {"config": put_seeds},
    "a million environments": {"config": lambda c: c.update(environments=c["environments"] * 2000)},
    "repeats of 10**400": {"config": put("repeats", 10**400)},
    "a version of 10**4200": {"config": lambda c: c["suite"].update(version=10**4200)},
    "a mean of 10**400": {"results": lambda r: r["mean"].update(value=10**400)},
    "an infinite option": {"config": lambda c: c["environments"][0]["options"].update(step_reward=float("inf"))},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sizes_are_findings_at_once(name: str, true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile", **HOSTILE[name])
    began = time.process_time()
    found = verify(path)
    assert {finding.name for finding in found.findings} == {"schema"} and found.replayed == 0
    assert time.process_time() - began < 5


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1" + "0" * 5000, "1e400", "-1e308", "NaN", "Infinity"])
def test_numbers_that_cannot_be_computed_with_are_findings(number: str, true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile")
    rows = rows_of(path)
    rows[0]["returns"] = "HERE"
    write_rows(path, rows)
    file = path / "episodes.jsonl"
    file.write_text(file.read_text("utf8").replace('"HERE"', number), "utf8")
    (finding,) = verify(path).findings
    assert finding.name == "schema" and "line 1" in finding.message


@pytest.mark.parametrize(
    "file", ["config.json", "results.json", "metadata.json", "episodes.jsonl", "transcripts.jsonl"]
)
@pytest.mark.parametrize("content", ["[" * 500 + "]" * 500, "[" * 10**6, '{"a":' * 100 + "1" + "}" * 100, ""])
def test_nesting_is_bounded(file: str, content: str, true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile")
    (path / file).write_text(content + "\n")
    found = verify(path)
    assert not found.is_accepted and found.replayed == 0


@pytest.mark.parametrize("file", ["config.json", "episodes.jsonl", "transcripts.jsonl"])
def test_a_pipe_is_no_file(file: str, true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile")
    (path / file).unlink()
    os.mkfifo(path / file)
    (finding,) = verify(path).findings
    assert "not a regular file" in finding.message


def test_a_gigabyte_is_refused_unread(true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile")
    os.truncate(path / "episodes.jsonl", 2**30)
    (finding,) = verify(path).findings
    assert f"{2**30:,} bytes, more than the {LARGEST_LINES:,}" in finding.message


def test_lines_are_bounded_in_number_and_length(true: Path, tmp_path: Path) -> None:
    path = changed(true, tmp_path / "hostile")
    (path / "baselines.jsonl").write_text("{}\n" * (MOST_EPISODES + 1))
    (path / "transcripts.jsonl").write_text('"' + "x" * LONGEST_LINE + '"\n')
    messages = " ".join(finding.message for finding in verify(path).findings)
    assert f"more than {MOST_EPISODES:,} lines" in messages and f"more than {LONGEST_LINE:,} bytes" in messages


def test_a_check_that_takes_too_long_is_a_finding(true: Path) -> None:
    found = verify_submission(true, seconds=0.01)
    assert found.label == "rejected" and {finding.name for finding in found.findings} == {"limits"}
    assert "--seconds" in found.findings[0].message


def test_a_check_in_a_process_of_its_own_finds_the_same(true: Path, tmp_path: Path) -> None:
    with LimitedProcess() as process:
        assert verify_submission(true, seed=1, process=process) == verify(true, seed=1)
        path = changed(true, tmp_path / "changed", results=put("repeats", 3))
        assert verify_submission(path, seed=1, process=process) == verify(path, seed=1)
        assert json.dumps(verify_submission(true, process=process).as_json())
