"""The script for one GPU runs on a CPU with a tiny model: its checks hold there, and its table is complete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.benchmarks.studies.speed import gpu
from turngym.benchmarks.studies.speed.gpu_lease import Lease

CPU = ["--device", "cpu", "--shape", "tiny"]


def rows_of(target: Path, *words: str) -> list[dict[str, object]]:
    """Return the table of a run of the script in this process."""
    assert gpu.main([*CPU, *words, "--out", str(target)]) == 0
    found: list[dict[str, object]] = json.loads(target.read_text("utf8"))["rows"]
    return found


@pytest.mark.integration
def test_all_pieces_run_on_a_cpu(tmp_path: Path) -> None:
    sizes = ["--rows", "4", "--length", "128", "--updates", "1", "--new-tokens", "4", "--seconds", "1200"]
    script = Path(gpu.__file__)
    words = [sys.executable, str(script), *CPU, *sizes, "--out", str(tmp_path / "gpu.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "gpu.json").read_text("utf8"))["rows"]
    assert {row["piece"] for row in found} == set(gpu.PIECES)
    assert not [row for row in found if row["ok"] is False or "skipped" in row["name"]]
    assert sum(row["piece"] == "scores" for row in found) == 2 * (3 * 2 * 2 + 3)
    assert all(row["tokens_a_second"] > 0 for row in found if row["piece"] in ("rollout", "update"))
    assert "checks passed, 0 failed" in done.stdout


def test_pieces_without_time_are_named(tmp_path: Path) -> None:
    found = rows_of(tmp_path / "gpu.json", "--seconds", "0", "--pieces", "scores", "rollout")
    assert [row["name"] for row in found] == ["skipped: no time"] * 2


def test_a_failure_is_a_row_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(lease: Lease) -> None:
        raise RuntimeError("no kernel image")

    monkeypatch.setitem(gpu.PIECES, "scores", (fail, 0.0))
    target = tmp_path / "gpu.json"
    assert gpu.main([*CPU, "--pieces", "scores", "ceilings", "--out", str(target)]) == 1
    scores, ceilings = json.loads(target.read_text("utf8"))["rows"]
    assert scores["ok"] is False and "no kernel image" in scores["error"]
    assert ceilings["piece"] == "ceilings"
