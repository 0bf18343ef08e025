"""Normalised numbers: 0 is random play, 100 the expert, so that environments can be averaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.benchmarks.statistics.estimates import equal_weight_mean, read_estimate

LOW, HIGH = "random", "expert"


def normalised(value: Estimate, low: float, high: float) -> Estimate:
    """Return ``100 * (x - low) / (high - low)`` with its interval.

    The two ends count as known: they are a scale, the same for all who are compared, so their uncertainty is left out.

    Args:
        value: The number.
        low: Value mapped to 0.
        high: Value mapped to 100; different from ``low``.

    >>> normalised(Estimate(0.5, 0.1, 0.3, 0.7, 10, 10, "Wilson"), 0.25, 0.75).value
    50.0
    """
    scale = 100 / (high - low)
    ends = sorted((scale * (value.low - low), scale * (value.high - low)))
    return Estimate(
        scale * (value.value - low),
        abs(scale) * value.stderr,
        ends[0],
        ends[1],
        value.count,
        value.blocks,
        value.method,
    )


def normalised_results(results: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the normalised number of each environment of a ``results.json``.

    Args:
        results: The content of the file, baselines included; an environment whose baselines are equal is left out.
    """
    baselines = results.get("baselines", {})
    if not {LOW, HIGH} <= baselines.keys():
        return {}
    metric, found = results["metric"], {}
    for label, numbers in results["environments"].items():
        low, high = (baselines[name]["environments"][label][metric]["value"] for name in (LOW, HIGH))
        if low != high and None not in (low, high, numbers[metric]["value"]):  # None: no episode was played
            found[label] = normalised(read_estimate(numbers[metric]), low, high)
    return found


def normalised_mean(results: Mapping[str, Any]) -> Estimate | None:
    """Return the mean of :func:`normalised_results` with equal weights, SE = sqrt(sum SE^2) / n; None without any."""
    found = normalised_results(results)
    return equal_weight_mean(list(found.values())) if found else None
