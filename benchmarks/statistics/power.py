"""How many seeds a paired comparison needs: the exact power of Student's t, by integration over the deviation.

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

_GRID = 501


class Interval(NamedTuple):
    """A mean difference with its interval."""

    mean: float
    low: float
    high: float


@lru_cache(maxsize=256)
def _deviations(degrees: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values of a sample's deviation as a share of the true one, and the probability of each."""
    spread = 9 / math.sqrt(2 * degrees)
    values = np.linspace(max(1e-6, 1 - spread), 1 + spread, _GRID)
    log_density = (degrees - 1) * np.log(values) - degrees * values**2 / 2
    density = np.exp(log_density - log_density.max())
    return values, density / density.sum()


def student_tail(t: float, degrees: int) -> float:
    """Return the probability that Student's t lies above a value.

    >>> round(student_tail(2.093, 19), 4)
    0.025
    """
    values, weights = _deviations(degrees)
    return float(sum(weights * [0.5 * math.erfc(t * s / math.sqrt(2)) for s in values]))


@lru_cache(maxsize=256)
def critical_t(degrees: int, level: float = 0.95) -> float:
    """Return the value that Student's t lies within with a probability of ``level``.

    >>> round(critical_t(19), 3), round(critical_t(2), 2)
    (2.093, 4.3)
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
        seeds: How many there are.
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
    """Return the smallest number of seeds with the wanted power, ``most`` if that is not enough.

    Args:
        effect: True mean of the differences.
        deviation: Their standard deviation.
        wanted: The power.
        most: Seeds at most.
        level: Of the interval.

    >>> seeds_needed(0.5, 1.0), seeds_needed(0.8, 1.0), seeds_needed(1.0, 1.0)
    (44, 19, 13)
    """
    low, high = 2, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, deviation, middle, level) >= wanted else (middle + 1, high)
    return low


def upper_deviation(differences: Sequence[float], confidence: float = 0.8) -> float:
    """Return a bound that the true deviation of differences lies below with some confidence.

    A few pilot seeds tell the deviation badly; with their plain estimate half of all studies have too few seeds.
    """
    degrees = len(differences) - 1
    values, weights = _deviations(degrees)
    place = int(np.searchsorted(weights.cumsum(), 1 - confidence))
    return stdev(differences) / float(values[place])


def interval(differences: Sequence[float], level: float = 0.95) -> Interval:
    """Return the mean of differences with its interval."""
    mean = fmean(differences)
    half = critical_t(len(differences) - 1, level) * stdev(differences) / math.sqrt(len(differences))
    return Interval(mean, mean - half, mean + half)


def verdict(found: Interval, effect: float) -> str:
    """Return what an interval says about a claimed gain.

    ``holds``: it lies above 0. ``does not hold``: it lies below the effect that the study was made for. ``undecided``:
    neither.

    >>> verdict(Interval(0.1, 0.02, 0.18), 0.05), verdict(Interval(0.0, -0.03, 0.03), 0.05)
    ('holds', 'does not hold')
    >>> verdict(Interval(0.03, -0.02, 0.08), 0.05)
    'undecided'
    """
    if found.low > 0:
        return "holds"
    return "does not hold" if found.high < effect else "undecided"
