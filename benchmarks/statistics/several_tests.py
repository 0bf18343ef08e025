"""Several tests at once: p-values of paired comparisons from their intervals, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from turngym.benchmarks.statistics.power import Interval, critical_t, student_tail


def p_value(found: Interval, count: int, mean: float = 0.0) -> float:
    """Return the two-sided p-value of Student's t test that the true mean of differences is a given one.

    Args:
        found: The mean with its 95 % interval.
        count: Number of differences.
        mean: The mean that is tested.

    >>> round(p_value(Interval(0.1, 0.0, 0.2), 20), 3), round(p_value(Interval(0.1, 0.05, 0.15), 20), 4)
    (0.05, 0.0005)
    """
    error = (found.high - found.low) / 2 / critical_t(count - 1)
    if error == 0:
        return float(math.isclose(found.mean, mean, abs_tol=1e-12))
    return min(2 * student_tail(abs(found.mean - mean) / error, count - 1), 1.0)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number: the chance of any false rejection stays below the level.

    >>> [round(value, 3) for value in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    found, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min((len(values) - rank) * values[place], 1.0))
        found[place] = highest
    return found
