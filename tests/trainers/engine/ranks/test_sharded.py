"""Two gloo ranks with a sharded model against one process with the whole of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rank_processes
import sharded_calls

from turngym.trainers.algorithms import ALGORITHMS

pytestmark = pytest.mark.integration

SHORT = ("16 bits", "adapters on 16 bits")
SEVERAL = ("minibatches",)


@pytest.fixture(scope="module")
def called() -> dict[str, Any]:
    """What the ranks found, which is the same on both."""
    words = [str(Path(sharded_calls.__file__)), *sharded_calls.CALLS]
    ended = rank_processes.run(words, TURNGYM_RANK_TIMEOUT="120")
    assert [each.status for each in ended] == [0, 0], ended
    found: list[dict[str, Any]] = [json.loads(each.output.splitlines()[-1]) for each in ended]
    return found[0]


@pytest.mark.parametrize(("kind", "bound"), [("float64", 1e-9), ("float32", 1e-5)])
def test_every_method_has_the_gradients_and_metrics_of_one_process(
    called: dict[str, Any], kind: str, bound: float
) -> None:
    assert called[kind].keys() == set(ALGORITHMS)
    for name, found in called[kind].items():
        assert found["gradients"] < bound, name
        assert found["names"] and found["metric"][1] < 10 * bound, (name, found["metric"])
    assert sum(found["norm"] > 1e-3 for found in called[kind].values()) > len(ALGORITHMS) - 4


def test_every_layout_and_setting_has_the_same_gradients(called: dict[str, Any]) -> None:
    for name, found in called["ways"].items():
        if name not in (*SHORT, *SEVERAL):
            assert found["gradients"] < 1e-5 and found["weights"] < 1e-4, (name, found)
            assert found["norm"] > 1e-5 and found["published"] < 1e-4, (name, found)


def test_weights_after_several_updates(called: dict[str, Any]) -> None:
    for name in ("minibatches", "adapters", "adapters and critic"):
        assert called["ways"][name]["weights"] < 1e-3, name


def test_16_bits_differ_by_rounding_alone(called: dict[str, Any]) -> None:
    for name in SHORT:
        found = called["ways"][name]
        assert found["gradients"] < 0.05 and found["published"] < 0.1, (name, found)
