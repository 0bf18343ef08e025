"""Demand of customers: a Poisson distribution as a table, so that draws are the same on every machine."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_REST = 1e-12


@lru_cache(maxsize=8)
def poisson(mean: float) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1, 2, ...; a tail of less than 1e-12 is left out.

    >>> table = poisson(20.0)
    >>> len(table), round(float(table[20]), 6), round(float(table @ np.arange(len(table))), 6)
    (60, 0.088835, 20.0)
    """
    shares, total, share = [], 0.0, math.exp(-mean)
    while total < 1 - _REST:
        shares.append(share)
        total += share
        share *= mean / len(shares)
    table = np.array(shares) / total
    table.flags.writeable = False
    return table


def draw(table: NDArray[np.float64], count: int, generator: np.random.Generator) -> list[int]:
    """Return independent draws from a table of probabilities.

    >>> draw(poisson(20.0), 5, np.random.default_rng(0))
    [21, 17, 13, 11, 24]
    """
    places = np.searchsorted(np.cumsum(table), generator.random(count), side="right")
    return [int(each) for each in np.minimum(places, len(table) - 1)]
