"""Arithmetic with the same result on every supported Python."""

import functools
import operator
from collections.abc import Iterable


def float_sum(values: Iterable[float]) -> float:
    """Add numbers from left to right, rounding after each.

    The built-in ``sum`` of floats compensates rounding errors since Python 3.12, so its last bits differ between
    versions. Rules, rewards and published numbers are added with this.

    >>> float_sum([0.1] * 10), float_sum([])
    (0.9999999999999999, 0)
    """
    return functools.reduce(operator.add, values, 0)
