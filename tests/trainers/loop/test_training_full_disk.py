"""A full disk, a real one: the run stops or makes room, nothing is written by halves, and a resume loses nothing."""

import json
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fault_runs import ITERATIONS, TINY, assert_goes_on_to, diagnosis, numbers
from forked import run_forked
from small_disks import fill, small_disk

from turngym.agents.models.loading import LanguageModel
from turngym.errors import RunStopped
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints
from turngym.trainers.loop.job import train

__all__ = ["small_disk"]  # a fixture


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TINY, folder).finished
    assert not (folder / "diagnosis.json").exists() and not (folder / ".reserve").exists()
    return numbers(folder)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # TensorBoard writes in a thread
@pytest.mark.parametrize("iteration", [0, 1])
def test_a_full_disk_stops_the_run_and_nothing_is_half_written(
    iteration: int, whole: list[dict[str, Any]], small_disk: Path
) -> None:
    """Before the first checkpoint, and right before one."""

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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_older_of_two_checkpoints_makes_room(whole: list[dict[str, Any]], small_disk: Path) -> None:
    """Though it is smaller than the new one."""

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == ITERATIONS - 1:
            (all_checkpoints(small_disk / "run" / "checkpoints")[0] / "state.json").unlink()
            fill(small_disk)

    assert train(TINY, small_disk / "run", watch=watch).finished
    assert all_checkpoints(small_disk / "run" / "checkpoints")[-1].name == "000005"
    assert numbers(small_disk / "run") == whole


def test_a_line_that_does_not_fit_is_not_written_by_halves(whole: list[dict[str, Any]], tmp_path: Path) -> None:
    """A limit on the size of files breaks the next line of the metrics after its first 100 bytes."""
    folder, said = tmp_path / "run", tmp_path / "said"

    def limit(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 2:
            size = (folder / "metrics.jsonl").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))

    def limited() -> None:
        with pytest.raises(RunStopped) as caught:
            train(TINY, folder, watch=limit)
        said.write_text(str(caught.value)[:1000])
        sys.exit(3)

    assert run_forked(limited) == 3
    assert "File too large" in said.read_text()
    assert (folder / "metrics.jsonl").read_text().endswith("}\n")
    assert [record["iteration"] for record in numbers(folder)] == [0, 1, 2]
    assert_goes_on_to(whole, TINY, folder)
