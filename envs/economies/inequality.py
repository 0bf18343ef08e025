"""How unequal amounts are."""

from __future__ import annotations

from collections.abc import Sequence


def gini(amounts: Sequence[int]) -> float:
    """Return the Gini coefficient of amounts of at least 0, times n / (n - 1): 1 if one of n has everything.

    >>> gini([10, 20, 70]), gini([5, 5]), gini([0, 0, 9])
    (0.6, 0.0, 1.0)
    """
    total, count = sum(amounts), len(amounts)
    if not total or count == 1:
        return 0.0
    ranked = sum([(2 * rank - count + 1) * amount for rank, amount in enumerate(sorted(amounts))])
    return ranked / (total * (count - 1))


def equality(amounts: Sequence[int]) -> float:
    """Return 1 minus the Gini coefficient.

    >>> round(equality([10, 20, 70]) * sum([10, 20, 70]) / 3, 4)
    13.3333
    """
    return 1.0 - gini(amounts)
