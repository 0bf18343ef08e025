"""The notebook of the documentation runs, and shows what it says; results become real data frames."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import metrics_record, run_folder

import turngym
from turngym.trainers.loop.job import JobResult

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
GENERATOR = Path(__file__).parents[2] / "docs" / "generator"


def test_the_outputs_of_the_notebook_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed: make integration-notebook")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(str(GENERATOR))
    generator = importlib.import_module("notebook")
    stored = nbformat.read(generator.NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    shown = [cell.get("outputs") for cell in stored.cells]
    assert sum(map(bool, shown)) >= 6
    again = generator.executed(nbformat.read(generator.NOTEBOOK, as_version=4))
    assert [cell.get("outputs") for cell in again.cells] == shown, "python docs/generator/notebook.py"


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_results_become_real_data_frames(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: Any = pytest.importorskip(package, reason=f"{package} is not installed: make integration-notebook")
    other = {"polars": "pandas", "pandas": "polars"}[package]
    for name in [each for each in sys.modules if each.partition(".")[0] == other]:
        monkeypatch.delitem(sys.modules, name)
    first, second = (turngym.evaluate("turngym/FrozenLake-v0", name, episodes=5) for name in ("random", "expert"))
    frame = second.to_frame()
    assert isinstance(frame, frames.DataFrame) and frame.shape[0] == 5 and list(frame["success"]) == [1] * 5
    differences = turngym.compare(first, second).to_frame()
    assert isinstance(differences, frames.DataFrame) and list(differences["environment"])[-1] == "mean"
    turns = turngym.rollout("turngym/FrozenLake-v0", "expert", episodes=2).to_frame()
    assert isinstance(turns, frames.DataFrame) and set(turns["episode"]) == {0, 1}
    folder = run_folder(tmp_path / "run", {})
    for number in range(3):
        folder.append_metrics(metrics_record(number))
    run = JobResult(folder.path, folder.path / "report.html", True, "").to_frame()
    assert isinstance(run, frames.DataFrame) and len(run) == len(folder.metrics()) >= 3
    assert list(run["iteration"])[-3:] == [0, 1, 2]
