"""Normalised numbers: ends, intervals, and the mean with equal weights."""

from typing import Any

import pytest

from turngym.agents.intervals import Estimate
from turngym.benchmarks.statistics.estimates import as_json, read_estimate
from turngym.benchmarks.statistics.normalised import normalised, normalised_mean, normalised_results


def estimate(value: float, stderr: float = 0.0) -> Estimate:
    return Estimate(value, stderr, value - 2 * stderr, value + 2 * stderr, 10, 10, "test")


def table(**values: float) -> dict[str, Any]:
    return {"environments": {label: {"success": as_json(estimate(value, 0.01))} for label, value in values.items()}}


def test_random_play_is_0_and_the_expert_100() -> None:
    for value, expected in ((0.2, 0.0), (0.7, 100.0), (0.45, 50.0), (0.1, -20.0)):
        assert normalised(estimate(value), 0.2, 0.7).value == pytest.approx(expected)


def test_errors_and_ends_are_stretched_alike() -> None:
    found = normalised(estimate(0.45, 0.05), 0.2, 0.7)
    assert (found.stderr, found.low, found.high) == pytest.approx((10.0, 30.0, 70.0))


def test_where_less_is_better_the_ends_keep_their_order() -> None:
    found = normalised(estimate(6.0, 1.0), 10.0, 5.0)
    assert (found.value, found.low, found.high, found.stderr) == pytest.approx((80.0, 40.0, 120.0, 20.0))


def test_environments_whose_ends_are_equal_or_unplayed_are_left_out() -> None:
    results = {"metric": "success", **table(a=0.5, b=0.5, c=0.5)}
    results["baselines"] = {"random": table(a=0.0, b=0.3, c=0.0), "expert": table(a=1.0, b=0.3, c=1.0)}
    results["environments"]["c"]["success"]["value"] = None
    assert {label: found.value for label, found in normalised_results(results).items()} == {"a": pytest.approx(50.0)}


def test_the_mean_weighs_environments_alike_and_adds_squared_errors() -> None:
    results = {"metric": "success", **table(a=0.5, b=0.2)}
    results["baselines"] = {"random": table(a=0.0, b=0.0), "expert": table(a=1.0, b=0.5)}
    mean = normalised_mean(results)
    assert mean is not None and mean.value == pytest.approx((50 + 40) / 2)
    assert mean.stderr == pytest.approx((1.0**2 + 2.0**2) ** 0.5 / 2), "SE = sqrt(sum SE^2) / n"


def test_without_both_baselines_there_is_no_scale() -> None:
    results = {"metric": "success", **table(a=0.5), "baselines": {"random": table(a=0.0)}}
    assert normalised_results(results) == {} and normalised_mean(results) is None


def test_an_estimate_is_read_back_as_it_was_written() -> None:
    assert read_estimate(as_json(estimate(0.3, 0.1))) == estimate(0.3, 0.1)
