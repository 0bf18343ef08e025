"""Confidence intervals for evaluation: cluster bootstrap, Wilson interval, paired differences.

The coverage of these intervals is measured by ``benchmarks/studies/checks/interval_coverage.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turngym.seeding import stream

RESAMPLES = 1000
FEWEST_BLOCKS = 6
"""Resampled blocks that an interval needs. A median is outside of all of n values with a probability of 2 ** (1 - n):
not even the whole range of five is a 95 % interval."""
TOO_FEW, NO_SPREAD = "too few", "no spread"
"""Why an estimate has no interval."""
_WILSON = "Wilson"
_NO_SPREAD = 1e-12
_Z = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A mean with its uncertainty.

    Args:
        value: The mean.
        stderr: Standard deviation of the bootstrap means.
        low: Lower end of the 95 % interval, if there is one; see :attr:`no_interval`.
        high: Upper end of the 95 % interval.
        count: Episodes.
        blocks: Independent blocks of episodes.
        method: Method of the interval.
    """

    value: float
    stderr: float
    low: float
    high: float
    count: int
    blocks: int
    method: str

    @property
    def no_interval(self) -> str:
        """Why the ends are not a 95 % interval; empty if they are.

        Fewer than :data:`FEWEST_BLOCKS` resampled blocks are too few. If all blocks are equal, no spread was observed,
        which does not mean that there is none.

        >>> cluster_bootstrap([0.0, 1.0], [0, 1]).no_interval, share([0.0, 1.0], [0, 1]).no_interval
        ('too few', '')
        >>> cluster_bootstrap([0.5] * 40, range(40)).no_interval
        'no spread'
        """
        if self.method == _WILSON:
            return ""
        if self.blocks < FEWEST_BLOCKS:
            return TOO_FEW
        return "" if self.high - self.low > _NO_SPREAD * max(1.0, abs(self.value)) else NO_SPREAD

    @property
    def has_interval(self) -> bool:
        """True if the ends are a 95 % interval."""
        return not self.no_interval


def cluster_bootstrap(values: Sequence[float], blocks: Sequence[int | str], seed: int = 0) -> Estimate:
    """Return the mean of ``values`` and a 95 % percentile interval that resamples whole blocks.

    Episodes of a block (the same task, or the same table with rotated seats) are dependent, so blocks are resampled,
    not episodes. The mean of a resample weights all its episodes equally. Resampling few blocks underestimates their
    spread, so the percentiles are moved outwards (see :func:`tail`).

    Raises:
        ValueError: There are no values, or not one block per value.

    >>> cluster_bootstrap([1.0, 1.0, 0.5, 1.0, 0.0, 1.0], range(6)).value
    0.75
    """
    sums, counts = _block_sums(values, blocks)
    picks = stream("bootstrap", seed).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[picks].sum(1) / counts[picks].sum(1)
    low, high = np.quantile(means, [tail(len(sums)), 1 - tail(len(sums))])
    value = float(sums.sum() / counts.sum())
    return Estimate(value, float(means.std()), float(low), float(high), len(values), len(sums), "cluster bootstrap")


def tail(blocks: int) -> float:
    """Return the share of resamples beyond each end of a 95 % percentile interval, 0.025 for many blocks.

    A percentile interval behaves like one that uses the normal instead of Student's distribution and divides by n
    instead of n - 1. Percentiles that correct both (Hesterberg 2015, "What Teachers Should Know About the Bootstrap",
    section 4.3):

        Phi(-sqrt(n / (n - 1)) * t_{0.975, n - 1})

    with Student's quantile from its expansion about the normal one (Abramowitz and Stegun, 26.7.5).

    >>> round(tail(5), 4), round(tail(25), 4), round(tail(400), 4)
    (0.001, 0.0176, 0.0245)
    """
    if blocks < 2:
        return 0.025
    free, z = blocks - 1, _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    student = z + sum(term / free**power for power, term in enumerate(terms, 1))
    return NormalDist().cdf(-math.sqrt(blocks / free) * student)


def share(values: Sequence[float], blocks: Sequence[int | str]) -> Estimate:
    """Return a mean of numbers in [0, 1] with its interval.

    Wilson's interval for wins and losses in separate blocks. If all blocks have the same mean, resampling finds no
    spread; the share of blocks that might differ is then bounded by Wilson's interval for n wins out of n blocks.
    Otherwise the cluster bootstrap.

    >>> estimate = share([1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1])
    >>> round(estimate.low, 2), estimate.high, estimate.method
    (0.34, 1.0, 'Wilson')
    >>> estimate = share([1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1])
    >>> estimate.low, estimate.high
    (0.0, 1.0)
    """
    sums, counts = _block_sums(values, blocks)
    count, mean = len(sums), float(sums.sum() / counts.sum())
    stderr = math.sqrt(max(0.0, mean * (1 - mean)) / count)
    if np.ptp(sums / counts) == 0:
        unseen = 1 - wilson(count, count)[0]
        return Estimate(mean, stderr, max(0.0, mean - unseen), min(1.0, mean + unseen), len(values), count, _WILSON)
    if count == len(values) and set(values) <= {0.0, 1.0}:
        return Estimate(mean, stderr, *wilson(round(mean * count), count), len(values), count, _WILSON)
    return cluster_bootstrap(values, blocks)


def paired_difference(
    after: Sequence[float], before: Sequence[float], seed: int = 0, blocks: Sequence[int | str] | None = None
) -> Estimate:
    """Return the mean of ``after - before`` over the same episodes, with a 95 % bootstrap interval.

    Args:
        after: Numbers of one side.
        before: Numbers of the other side, in the same order.
        seed: Seed of the resampling.
        blocks: Block of each episode (default: one block per episode).

    >>> paired_difference([1.0, 1.0], [0.0, 0.0]).value
    1.0
    """
    if len(after) != len(before):
        raise ValueError(
            f"a paired difference needs the same episodes on both sides, got {len(after)} and {len(before)}."
        )
    differences = [a - b for a, b in zip(after, before, strict=True)]
    return cluster_bootstrap(differences, range(len(differences)) if blocks is None else blocks, seed)


def share_difference(
    after: Sequence[float], before: Sequence[float], seed: int = 0, blocks: Sequence[int | str] | None = None
) -> Estimate:
    """Return the mean of ``after - before`` of numbers in [0, 1], such as successes on the same tasks.

    If all blocks agree, resampling finds no spread. Wilson's interval then bounds the share of blocks that might
    differ, which are assumed to differ by one success. Arguments as in :func:`paired_difference`.

    >>> found = share_difference([1.0] * 40, [0.0] * 40)
    >>> found.value, round(found.low, 2), found.high
    (1.0, 0.91, 1.0)
    """
    found = paired_difference(after, before, seed, blocks)
    if found.high - found.low > _NO_SPREAD:
        return found
    unseen = 1 - wilson(found.blocks, found.blocks)[0]
    return replace(found, low=max(-1.0, found.value - unseen), high=min(1.0, found.value + unseen), method=_WILSON)


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


def wilson(successes: int, count: int, z: float = _Z) -> tuple[float, float]:
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
