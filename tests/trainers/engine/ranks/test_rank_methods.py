"""Two ranks against one process: gradients and metrics of every method, awkward shares, resumes, a rank that dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rank_methods
import rank_processes
import torch
from rank_methods import METHODS
from safetensors.torch import load_file

from turngym.trainers.engine.ranks import SINGLE
from turngym.trainers.records.run_folder import RunFolder

pytestmark = pytest.mark.integration

TOLERANCES = {"float64": 1e-9, "float32": 1e-5}
OWN_COUNTS = ("time/", "rollout/prefilled_tokens", "rollout/reused_tokens", "rollout/cache_forks")
"""What depends on how many episodes are played side by side."""


MODULES = f"{Path(rank_methods.__file__).parent}:{Path(__file__).parents[4]}"


def _stage(folder: Path, stage: str) -> list[str]:
    return [str(Path(rank_methods.__file__)), str(folder), stage]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The runs of one process, and those of two ranks with the last stage of the resumed one."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    ended = rank_processes.run(_stage(two, "first"), timeout=2400, PYTHONPATH=MODULES, TURNGYM_RANK_TIMEOUT="300")
    assert [each.status for each in ended] == [0, 0], ended
    rank_methods.train_all(SINGLE, one)
    return one, two


@pytest.fixture(scope="module")
def third(folders: tuple[Path, Path]) -> tuple[Path, Path, rank_processes.Ended]:
    """The same run by one process; and by two ranks, one process, two ranks; how torchrun of the last two ended."""
    one, two = folders
    rank_methods.train(SINGLE, one / rank_methods.RESUMED, rank_methods.RESUMED_CONFIG)
    rank_methods.train(SINGLE, two / rank_methods.RESUMED, rank_methods.RESUMED_CONFIG, resumes=True, until=4)
    return one, two, rank_processes.torchrun(_stage(two, "third"), PYTHONPATH=MODULES)


def _records(folder: Path) -> list[dict[str, Any]]:
    return RunFolder(folder).metrics()


def _assert_same_metrics(one: Path, two: Path, tolerance: float) -> None:
    expected, found = _records(one), _records(two)
    assert len(expected) == len(found)
    for before, after in zip(expected, found, strict=True):
        assert before.keys() == after.keys() - {"time/communication"}
        for name, value in before.items():
            if not name.startswith(OWN_COUNTS):
                assert after[name] == pytest.approx(value, abs=tolerance, rel=tolerance, nan_ok=True), name


@pytest.mark.parametrize(("dtype", "method"), [(dtype, each) for dtype in TOLERANCES for each in METHODS[dtype]])
def test_gradients_and_metrics_are_those_of_one_process(dtype: str, method: str, folders: tuple[Path, Path]) -> None:
    one, two = folders
    assert not list(one.glob("*.error")) + list(two.glob("*.error"))
    expected, found = (load_file(folder / f"{method}-{dtype}.safetensors") for folder in folders)
    assert expected.keys() == found.keys()
    assert max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-4, "nothing is compared"
    compared = list(expected) if dtype == "float64" else list(expected)[:1]  # later ones start from other roundings
    for name in compared:
        torch.testing.assert_close(found[name], expected[name], atol=TOLERANCES[dtype], rtol=0)
    if dtype == "float64":
        assert all(record["time/communication"] > 0 for record in _records(two / f"{method}-{dtype}"))
        _assert_same_metrics(one / f"{method}-{dtype}", two / f"{method}-{dtype}", 1e-7)


@pytest.mark.parametrize(
    "case", [rank_methods.ONE_GROUP, rank_methods.ALL_FAULTY, rank_methods.JOURNALED, rank_methods.REWARDED]
)
def test_awkward_shares_and_other_ways_to_play(case: str, folders: tuple[Path, Path]) -> None:
    one, two = folders
    expected, found = (load_file(folder / f"{case}.safetensors") for folder in folders)
    assert bool(expected) == (case != rank_methods.ALL_FAULTY)
    assert expected.keys() == found.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-9, rtol=0)
    _assert_same_metrics(one / case, two / case, 1e-7)


def test_two_ranks_one_and_two_again_go_on_with_the_same_numbers(
    third: tuple[Path, Path, rank_processes.Ended],
) -> None:
    one, two, _ = third
    assert len(_records(one / rank_methods.RESUMED)) == rank_methods.RESUMED_CONFIG.iterations
    _assert_same_metrics(one / rank_methods.RESUMED, two / rank_methods.RESUMED, 1e-7)


def test_a_rank_that_dies_ends_the_other_with_a_message(
    third: tuple[Path, Path, rank_processes.Ended],
) -> None:
    """The launcher sends its signal to the first rank after the diagnosis and before the message."""
    _, two, ended = third
    assert ended.status != 0, ended
    assert "rank 0 of 2 lost the others" in ended.errors, ended.errors
    assert (two / "killed" / "diagnosis.json").is_file()
    assert len(_records(two / "killed")) == 1
