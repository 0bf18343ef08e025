"""The script for one GPU runs on a CPU with a tiny model: its checks hold there, and its table is complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.benchmarks.studies.speed import gpu, gpu_speed
from turngym.benchmarks.studies.speed.gpu_lease import Lease
from turngym.trainers.engine import compiling
from turngym.trainers.engine.layouts import LAYOUTS

CPU = ["--device", "cpu", "--shape", "tiny"]


def rows_of(target: Path, *words: str) -> list[dict[str, Any]]:
    """Return the table of a run of the script in this process."""
    assert gpu.main([*CPU, *words, "--out", str(target)]) == 0
    found: list[dict[str, Any]] = json.loads(target.read_text("utf8"))["rows"]
    return found


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_all_pieces_run_on_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compiled layers are captured here, and run as they are; ``test_compiling.py`` traces their gradients too."""
    monkeypatch.setattr(compiling, "_BACKEND", "eager")
    monkeypatch.setattr(gpu_speed, "_ROLLOUTS", ((8, 3, 0), (16, 2, 8)))
    sizes = ["--rows", "4", "--length", "128", "--updates", "1", "--new-tokens", "4", "--seconds", "1200"]
    found = rows_of(tmp_path / "gpu.json", *sizes)
    assert {row["piece"] for row in found} == set(gpu.PIECES)
    assert not [row for row in found if row["ok"] is False or "skipped" in row["name"]]
    assert sum(row["piece"] == "scores" for row in found) == 2 * len(LAYOUTS) * (2 * 2 + 1)
    assert all(row["tokens_a_second"] > 0 for row in found if row["piece"] in ("rollout", "update"))
    assert "checks passed, 0 failed" in capsys.readouterr().out


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
