"""Two processes that talk over gloo, and the one that talks to nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rank_calls
import rank_processes
import torch

from turngym.errors import ConfigError
from turngym.trainers.engine.ranks import SINGLE
from turngym.trainers.engine.ranks.launch import Place, place_in, rank_device, timeout_in


@pytest.fixture(scope="module")
def called() -> list[dict[str, Any]]:
    """What each of two ranks got from every call."""
    ended = rank_processes.run([str(Path(rank_calls.__file__))], TURNGYM_RANK_TIMEOUT="60")
    assert [each.status for each in ended] == [0, 0], ended
    return [json.loads(each.output) for each in ended]


def test_every_rank_knows_its_place(called: list[dict[str, Any]]) -> None:
    assert [each["place"] for each in called] == [[0, 2, 0, True], [1, 2, 1, False]]


def test_values_of_all_ranks_arrive_exactly(called: list[dict[str, Any]]) -> None:
    for each in called:
        assert [value["text"] for value in each["exchange"]] == ["\ud800 \u2603", "\ud800 \u2603" * 2]
        assert all(value["nan"] != value["nan"] for value in each["exchange"])
        assert each["any"] == [True, False]
        assert each["maximum"] == 1.0
        assert each["numbers"] == {"both": 0.2, "only_0": 0.2, "only_1": 0.2}
        assert each["from_first"] == "rank 0"
        assert each["slow"] == {"eval/success": 0.1 + 0.2}


def test_a_result_that_stays_on_its_rank(called: list[dict[str, Any]]) -> None:
    assert [each["agree"] for each in called] == ["tensor([0, 0])", "tensor([1, 1])"]


def test_vectors_of_different_lengths(called: list[dict[str, Any]]) -> None:
    for each in called:
        assert each["concatenated"] == [0.0, 1.0, 2.0]
        assert each["nothing"] == []


def test_an_error_on_one_rank_ends_all_with_its_words(called: list[dict[str, Any]]) -> None:
    for each in called:
        assert each["refused"] == "ConfigError: no such split {}"
        assert each["config"] == "ConfigError: no such thing {}"
        assert each["divergence"] == 'DivergenceError: the loss is nan. {"row": 3, "value": "nan"}'
    assert called[1]["foreign"].startswith("ZeroDivisionError: division by zero")
    assert called[0]["foreign"].startswith("RankFailed: rank 1 stopped: ZeroDivisionError: division by zero")


def test_what_must_be_equal(called: list[dict[str, Any]]) -> None:
    for each in called:
        assert "the episodes differ between the 2 ranks" in each["unequal"]
        assert each["equal"] == "no error"


def test_tensors_are_replaced_by_their_sums(called: list[dict[str, Any]]) -> None:
    ones, scalar, grid, thirds, empty = called[0]["sums"]
    assert called[1]["sums"] == called[0]["sums"]
    assert (ones, scalar, empty) == ([2.0, 2.0], 6.0, [])
    assert grid == [[1.0, 7.0], [3.0, 9.0], [5.0, 11.0]]
    assert thirds == [2 / 3] * 3


def test_a_gradient_that_one_rank_lacks_is_zero_there(called: list[dict[str, Any]]) -> None:
    for each in called:
        assert each["gradients"] == [[0.1, 0.1], [1.1, 1.1], [0.1 + 1.1] * 2, None]


def test_one_process_changes_nothing() -> None:
    tensor = torch.ones(2)
    SINGLE.sum([tensor])
    assert tensor.tolist() == [1.0, 1.0]
    assert SINGLE.is_first
    assert not SINGLE.any(False)
    assert SINGLE.on_first(lambda: 4) == 4
    SINGLE.require_equal("nothing", lambda: pytest.fail("one rank has nothing to compare with"))


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "2", "WORLD_SIZE": "2"},
        {"RANK": "x", "WORLD_SIZE": "2"},
        {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "-1"},
    ],
)
def test_variables_that_no_launcher_sets(variables: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="torchrun"):
        place_in(variables)


def test_devices_of_ranks() -> None:
    assert rank_device("cuda", Place(5, 8, 1)) == "cuda:1"
    with pytest.raises(ConfigError, match="cannot share"):
        rank_device("cuda:0", Place(0, 2, 0))


@pytest.mark.parametrize("given", ["0", "soon", "inf", "nan"])
def test_timeouts_that_make_no_sense(given: str) -> None:
    with pytest.raises(ConfigError, match="seconds above 0"):
        timeout_in({"TURNGYM_RANK_TIMEOUT": given})
