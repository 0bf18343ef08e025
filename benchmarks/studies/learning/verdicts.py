"""What paired values over seeds say: the mean difference, its interval, and a word for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turngym.benchmarks.statistics.power import interval, is_known

SEEDS = (0, 1, 2)
CLAIM = ("holds", "does not hold")
CHANGE = ("improves", "does not improve")


def difference(better: Sequence[float], worse: Sequence[float], words: tuple[str, str] = CLAIM) -> dict[str, Any]:
    """Return the mean difference of paired values, its 95 % interval by Student's t, and what that says.

    Args:
        better: A value a seed, of the side that is expected to be larger.
        worse: The same of the other side.
        words: What it is called if the interval lies above 0, and if it lies below.

    >>> difference([0.5, 0.6, 0.7], [0.4, 0.5, 0.61])["verdict"], difference([0.5, 0.6], [0.4, 0.5])["verdict"]
    ('holds', 'undecided')
    """
    differences = [first - second for first, second in zip(better, worse, strict=True)]
    found = interval(differences)
    if not is_known(differences):
        return {**found._asdict(), "verdict": "undecided"}
    verdict = words[0] if found.low > 0 else words[1] if found.high < 0 else "undecided"
    return {**found._asdict(), "verdict": verdict}


def in_points(found: dict[str, Any]) -> str:
    """Return a difference of shares in percentage points with its interval.

    >>> in_points({"mean": 0.1, "low": -0.021, "high": 0.3})
    '+10.0 [-2.1, 30.0]'
    """
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
