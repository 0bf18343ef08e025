"""Confidence intervals for evaluation: cluster bootstrap, Wilson interval, paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turngym.seeding import stream

RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A mean with its uncertainty.

    Args:
        value: The mean.
        stderr: Standard deviation of the bootstrap means.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        count: Episodes.
        blocks: Independent blocks of episodes.
        method: How the interval was made.
    """

    value: float
    stderr: float
    low: float
    high: float
    count: int
    blocks: int
    method: str


def cluster_bootstrap(values: Sequence[float], blocks: Sequence[int | str], seed: int = 0) -> Estimate:
    """Return the mean of ``values`` and a 95 % percentile interval that resamples whole blocks.

    Episodes of one block (the same task, or the same table with rotated seats) depend on one another, so blocks and
    not episodes are drawn. A resample's mean weighs every drawn episode the same.

    Raises:
        ValueError: No values, or not one block for each.

    >>> cluster_bootstrap([1.0, 1.0, 1.0], [0, 1, 2]).low
    1.0
    """
    sums, counts = _block_sums(values, blocks)
    picks = stream("bootstrap", seed).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[picks].sum(1) / counts[picks].sum(1)
    low, high = np.percentile(means, [2.5, 97.5])
    value = float(sums.sum() / counts.sum())
    return Estimate(value, float(means.std()), float(low), float(high), len(values), len(sums), "cluster bootstrap")


def paired_difference(after: Sequence[float], before: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean of ``after - before`` over the same episodes, with a 95 % bootstrap interval.

    >>> paired_difference([1.0, 1.0], [0.0, 0.0]).value
    1.0
    """
    if len(after) != len(before):
        raise ValueError(
            f"a paired difference needs the same episodes on both sides, got {len(after)} and {len(before)}."
        )
    differences = [a - b for a, b in zip(after, before, strict=True)]
    return cluster_bootstrap(differences, range(len(differences)), seed)


def _block_sums(
    values: Sequence[float], blocks: Sequence[int | str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not len(values) or len(values) != len(blocks):
        raise ValueError(
            f"each value needs its block and there must be one at least, got {len(values)} and {len(blocks)}."
        )
    totals: dict[int | str, tuple[float, int]] = {}
    for value, block in zip(values, blocks, strict=True):
        total, count = totals.get(block, (0.0, 0))
        totals[block] = total + float(value), count + 1
    pairs = list(totals.values())
    return np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs], float)


def wilson(successes: int, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return the Wilson 95 % interval of a share (Wilson 1927).

    >>> tuple(round(x, 3) for x in wilson(8, 10))
    (0.49, 0.943)
    """
    if count < 1 or not 0 <= successes <= count:
        raise ValueError(f"wilson needs 0 <= successes <= count and count >= 1, got {successes} of {count}.")
    share = successes / count
    scale = 1 + z * z / count
    centre = (share + z * z / (2 * count)) / scale
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / scale
    return centre - half, centre + half
