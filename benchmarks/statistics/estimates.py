"""Means of estimates, and the form that an estimate has in a results file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.arithmetic import float_sum


def equal_weight_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates, such as of environments, each with equal weight, with its interval.

    Each end is as far from the mean as the root of the summed squares of the distances of the single ends, over their
    number (Zou and Donner 2008, "Construction of confidence limits about effect measures"). So the mean of shares stays
    in [0, 1], and where all tasks of all environments are solved the interval still has a width, as Wilson's have.

    >>> one = Estimate(0.5, 0.3, 0.0, 1.0, 10, 10, "")
    >>> other = Estimate(1.0, 0.4, 0.2, 1.0, 10, 10, "")
    >>> mean = equal_weight_mean([one, other])
    >>> mean.value, mean.stderr, mean.high
    (0.75, 0.25, 1.0)
    >>> lost = Estimate(0.0, 0.0, 0.0, 0.3, 8, 8, "Wilson")
    >>> equal_weight_mean([lost, lost, lost, lost]).high
    0.15
    """
    if not estimates:
        raise ValueError("a mean needs at least one estimate, got none.")
    if len(estimates) == 1:
        return estimates[0]
    number = len(estimates)
    value = float_sum(estimate.value for estimate in estimates) / number
    stderr, down, up = (
        math.hypot(*distances) / number
        for distances in (
            [each.stderr for each in estimates],
            [each.value - each.low for each in estimates],
            [each.high - each.value for each in estimates],
        )
    )
    count, blocks = sum(e.count for e in estimates), sum(e.blocks for e in estimates)
    return Estimate(value, stderr, value - down, value + up, count, blocks, "equal-weight mean")


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
