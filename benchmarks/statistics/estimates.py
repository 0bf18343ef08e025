"""Means of estimates, and the form that an estimate has in a results file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.arithmetic import float_sum

_Z = 1.959963984540054


def equal_weight_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean over environments, each with equal weight, with its 95 % interval.

    The environments are independent, so the standard error is the root of the summed squares over their number.

    >>> one = Estimate(0.5, 0.3, 0.0, 1.0, 10, 10, "")
    >>> other = Estimate(1.0, 0.4, 0.2, 1.8, 10, 10, "")
    >>> mean = equal_weight_mean([one, other])
    >>> mean.value, mean.stderr
    (0.75, 0.25)
    """
    if not estimates:
        raise ValueError("a mean needs at least one estimate, got none.")
    if len(estimates) == 1:
        return estimates[0]
    value = float_sum(estimate.value for estimate in estimates) / len(estimates)
    stderr = math.sqrt(float_sum(estimate.stderr**2 for estimate in estimates)) / len(estimates)
    count, blocks = sum(e.count for e in estimates), sum(e.blocks for e in estimates)
    return Estimate(value, stderr, value - _Z * stderr, value + _Z * stderr, count, blocks, "equal-weight mean")


def mean_of_few(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates with equal weights, its interval made from theirs.

    Each end lies as far from the mean as the root of the summed squares of the distances of the single ends, over their
    number (Zou and Donner 2008, "Construction of confidence limits about effect measures"). Where all tasks of a few
    environments are lost the standard errors are 0, but Wilson's intervals are not.

    >>> lost = Estimate(0.0, 0.0, 0.0, 0.3, 8, 8, "Wilson")
    >>> mean = mean_of_few([lost, lost, lost, lost])
    >>> mean.low, mean.high
    (0.0, 0.15)
    """
    if len(estimates) == 1:
        return estimates[0]
    plain, count = equal_weight_mean(estimates), len(estimates)
    down, up = (
        math.hypot(*(each.value - end for each, end in zip(estimates, ends, strict=True))) / count
        for ends in ([each.low for each in estimates], [each.high for each in estimates])
    )
    return replace(plain, low=plain.value - down, high=plain.value + up, method="from the single intervals")


def as_json(estimate: Estimate, higher_is_better: bool = True) -> dict[str, Any]:
    """Return an estimate under the names that result files have."""
    return {
        "value": estimate.value,
        "stderr": estimate.stderr,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "n_games": estimate.count,
        "n_blocks": estimate.blocks,
        "method": estimate.method,
        "higher_is_better": higher_is_better,
    }


def read_estimate(content: Mapping[str, Any]) -> Estimate:
    """Return an estimate from the form that it has in a results file."""
    numbers = (content[key] for key in ("value", "stderr", "ci_low", "ci_high", "n_games", "n_blocks", "method"))
    return Estimate(*numbers)
