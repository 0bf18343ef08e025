"""What paired values over three seeds say: the mean difference, its interval, and a word for it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

SEEDS = (0, 1, 2)
T_95 = 4.303
"""Student's t for two degrees of freedom: three seeds."""
CLAIM = ("holds", "does not hold")
CHANGE = ("improves", "does not improve")


def difference(
    better: Sequence[float], worse: Sequence[float], words: tuple[str, str] = CLAIM, t: float = T_95
) -> dict[str, Any]:
    """Return the mean difference of paired values, its 95 % interval, and what that says.

    Args:
        better: A value a seed, of the side that shall be larger.
        worse: The same of the other side.
        words: What it is called if the interval lies above 0, and if it lies below.
        t: Student's t for the number of seeds.

    >>> difference([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])["verdict"]
    'holds'
    """
    each = [first - second for first, second in zip(better, worse, strict=True)]
    mean = statistics.fmean(each)
    half = t * statistics.stdev(each) / len(each) ** 0.5
    verdict = words[0] if mean - half > 0 else words[1] if mean + half < 0 else "undecided"
    return {"mean": mean, "low": mean - half, "high": mean + half, "verdict": verdict}


def in_points(found: dict[str, Any]) -> str:
    """Return a difference of shares in percentage points with its interval.

    >>> in_points({"mean": 0.1, "low": -0.021, "high": 0.3})
    '+10.0 [-2.1, 30.0]'
    """
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
