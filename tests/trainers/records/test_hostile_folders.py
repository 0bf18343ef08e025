"""Run folders of others: whatever a file is, the report is written and names it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from synthetic_runs import run_folder

from turngym.errors import CheckpointError
from turngym.storage.files import read_content, read_jsonl
from turngym.trainers.report.findings import read_run
from turngym.trainers.report.run import write_report

FILES = (
    "config.json",
    "metrics.jsonl",
    "instances.json",
    "evaluations/final-sampled.json",
    "evaluations/final-sampled.episodes.jsonl",
    "samples/final.jsonl",
)
ATTACKS = ("pipe", "device", "large", "deep", "bytes")


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """End a test that waits for a pipe, as the version before did."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("a file was read without end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def attack(file: Path, kind: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "large":
        with file.open("wb") as stream:
            stream.truncate(2**40)
    else:
        file.write_bytes(b"[" * 200_000 + b"\n{}\n" if kind == "deep" else b"\xff\x00\xfe")


@pytest.mark.parametrize("kind", ATTACKS)
def test_a_report_is_written_whatever_the_files_are(kind: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"final-sampled": [0, 1] * 4}, iterations=2)
    for name in FILES:
        assert (folder.path / name).exists()
        attack(folder.path / name, kind)
    missing = " ".join(read_run(folder).missing)
    for name in ("config.json", "metrics.jsonl", "instances.json", "evaluation final-sampled", "samples"):
        assert name in missing
    assert write_report(folder).stat().st_size > 1000
    with pytest.raises(CheckpointError, match="is damaged"):
        folder.config()


@pytest.mark.parametrize("content", ["[]", "3", "null", '"x"', "{"])
def test_settings_and_evaluations_of_another_shape_are_damaged(content: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"final-sampled": [0, 1]}, iterations=1)
    (folder.path / "config.json").write_text(content)
    (folder.path / "evaluations" / "final-sampled.json").write_text(content)
    for read in (folder.config, folder.evaluations):
        with pytest.raises(CheckpointError, match="is damaged"):
            read()


@pytest.mark.parametrize("kind", ["pipe", "device", "large", "deep"])
def test_reading_a_file_that_has_no_end_is_an_error(kind: str, tmp_path: Path) -> None:
    attack(tmp_path / "file", kind)
    for read in (read_content, read_jsonl):
        with pytest.raises(ValueError, match=r"regular|bytes, more|nested|not JSON"):
            read(tmp_path / "file")
