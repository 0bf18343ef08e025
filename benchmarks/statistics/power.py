"""Number of seeds for a paired comparison: the exact power of Student's t, by integration over the standard deviation.

With differences of mean ``effect`` and standard deviation ``deviation``, the test statistic of ``n`` of them exceeds
the critical value ``t`` if a standard normal number plus ``effect / deviation * sqrt(n)`` exceeds ``t * s``, where
``s`` is the sample's deviation as a share of the true one, whose square has the chi-squared distribution over its
degrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.arithmetic import is_finite

_GRID, _FINE_GRID, _FEW_DEGREES = 501, 8001, 3
FEWEST_PAIRS = 3
"""With two, the critical value of Student's t is 12.7, and such an interval says next to nothing."""
_NO_SPREAD = 1e-12


UNBOUNDED = -math.inf, math.inf


class Interval(NamedTuple):
    """A mean with its interval."""

    mean: float
    low: float
    high: float


@lru_cache(maxsize=256)
def _deviations(degrees: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values of a sample's deviation as a share of the true one, and the probability of each."""
    spread = 9 / math.sqrt(2 * degrees)
    values = np.linspace(max(1e-6, 1 - spread), 1 + spread, _GRID if degrees > _FEW_DEGREES else _FINE_GRID)
    log_density = (degrees - 1) * np.log(values) - degrees * values**2 / 2
    density = np.exp(log_density - log_density.max())
    return values, density / density.sum()


def student_tail(t: float, degrees: int) -> float:
    """Return the probability that Student's t is above a value, by its finite sum (Abramowitz and Stegun, 26.7.3-4).

    >>> round(student_tail(2.093, 19), 4), round(student_tail(12.7062, 1), 6)
    (0.025, 0.025)
    """
    angle = math.atan(t / math.sqrt(degrees))
    square = math.cos(angle) ** 2
    is_odd = degrees % 2
    term = total = math.cos(angle) if is_odd else 1.0
    for number in range(2 + is_odd, degrees - 1, 2):
        term *= square * (number - 1) / number
        total += term
    if degrees == 1:
        total = 0.0
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total
    return (1 - inside) / 2


@lru_cache(maxsize=256)
def critical_t(degrees: int, level: float = 0.95) -> float:
    """Return the value that Student's t is within with a probability of ``level``.

    >>> [round(critical_t(degrees), 3) for degrees in (1, 2, 19)]
    [12.706, 4.303, 2.093]
    """
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, degrees) > (1 - level) / 2 else (low, middle)
    return (low + high) / 2


def power(effect: float, deviation: float, seeds: int, level: float = 0.95) -> float:
    """Return the probability that the interval of a paired comparison excludes 0.

    Args:
        effect: True mean of the differences.
        deviation: Their standard deviation.
        seeds: Number of them.
        level: Of the interval.

    >>> round(power(0.5, 1.0, 44), 2), round(power(0.8, 1.0, 19), 2)
    (0.9, 0.91)
    """
    if seeds < 2:
        return 0.0
    if deviation == 0:
        return float(effect != 0)
    values, weights = _deviations(seeds - 1)
    t, shift = critical_t(seeds - 1, level), effect / deviation * math.sqrt(seeds)
    either = [NormalDist().cdf(shift - t * s) + NormalDist().cdf(-shift - t * s) for s in values]
    return float(sum(weights * either))


def seeds_needed(effect: float, deviation: float, wanted: float = 0.9, most: int = 1000, level: float = 0.95) -> int:
    """Return the smallest number of seeds with the wanted power, at least :data:`FEWEST_PAIRS` and at most ``most``.

    Args:
        effect: True mean of the differences.
        deviation: Their standard deviation.
        wanted: The power.
        most: Seeds at most.
        level: Of the interval.

    >>> seeds_needed(0.5, 1.0), seeds_needed(0.8, 1.0), seeds_needed(1.0, 1.0)
    (44, 19, 13)
    """
    low, high = FEWEST_PAIRS, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, deviation, middle, level) >= wanted else (middle + 1, high)
    return low


def interval(values: Sequence[float], level: float = 0.95, within: tuple[float, float] = UNBOUNDED) -> Interval:
    """Return the mean of values with the interval of Student's t.

    Args:
        values: The values, such as paired differences.
        level: Of the interval.
        within: Where the mean must be: of shares 0 to 1, of their differences -1 to 1. The interval is cut there, which
            loses nothing.

    Raises:
        ValueError: There are fewer than two values, or one is not finite.

    >>> interval([0.2, 0.9, 0.3], within=(0.0, 1.0)).low
    0.0
    """
    if len(values) < 2 or not all(map(is_finite, values)):
        raise ValueError(f"an interval needs two finite values at least, got {values!r:.100}.")
    mean = fmean(values)
    half = critical_t(len(values) - 1, level) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]))


def is_known(values: Sequence[float]) -> bool:
    """Return whether values have an interval: there are enough, all finite, and they are not all the same.

    Equal values have a deviation of 0, which says that their spread has not been seen, not that there is none.

    >>> is_known([0.1, 0.2]), is_known([0.1, 0.1, 0.1]), is_known([0.1, 0.2, 0.1])
    (False, False, True)
    """
    if len(values) < FEWEST_PAIRS or not all(map(is_finite, values)):
        return False
    return max(values) - min(values) > _NO_SPREAD


def verdict(found: Interval, effect: float) -> str:
    """Return what an interval says about a claimed gain.

    ``holds``: it is above 0. ``does not hold``: it is below the effect that the study was made for. ``undecided``:
    neither, or it has no width, as of differences that are all the same.

    >>> verdict(Interval(0.1, 0.02, 0.18), 0.05), verdict(Interval(0.0, -0.03, 0.03), 0.05)
    ('holds', 'does not hold')
    >>> verdict(Interval(0.03, -0.02, 0.08), 0.05), verdict(Interval(0.0, 0.0, 0.0), 0.05)
    ('undecided', 'undecided')
    """
    if found.high - found.low <= _NO_SPREAD:
        return "undecided"
    if found.low > 0:
        return "holds"
    return "does not hold" if found.high < effect else "undecided"
