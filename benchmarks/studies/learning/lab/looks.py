"""When the main runs of an experiment are compared: after a quarter, after half and after all of them.

A large difference shows after few seeds. The chance of a wrong verdict, 5 %, is split over the looks, so that it stays
5 % in all however they depend on each other (Bonferroni); the most is left for the last, which has the most seeds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LEVEL = 0.05
SHARES = (0.25, 0.5, 1.0)
LEVELS = (0.01, 0.015, 0.025)
FEWEST_SEEDS = 80
"""Experiments with fewer seeds have one look: a quarter of them would decide nothing."""


class Look(NamedTuple):
    """One comparison of the runs so far."""

    seeds: int
    level: float


def looks(seeds: int) -> list[Look]:
    """Return the looks of an experiment.

    Args:
        seeds: How many seeds each arm has at most.

    >>> looks(200)
    [Look(seeds=50, level=0.01), Look(seeds=100, level=0.015), Look(seeds=200, level=0.025)]
    >>> looks(20)
    [Look(seeds=20, level=0.05)]
    """
    if seeds < FEWEST_SEEDS:
        return [Look(seeds, LEVEL)]
    return [Look(math.ceil(share * seeds), level) for share, level in zip(SHARES, LEVELS, strict=True)]
