"""Arithmetic with the same result on every supported Python, and numbers of any size from outside."""

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any


def float_sum(values: Iterable[float]) -> float:
    """Add numbers from left to right, rounding after each.

    The built-in ``sum`` of floats compensates rounding errors since Python 3.12, so its last bits differ between
    versions. Rules, rewards and published numbers are added with this.

    >>> float_sum([0.1] * 10), float_sum([])
    (0.9999999999999999, 0)
    """
    return functools.reduce(operator.add, values, 0)


def as_float(value: Any) -> float:
    """Return a number as a float; one that is too large for any becomes infinite instead of an OverflowError.

    >>> as_float(3), as_float(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a float can hold, whatever its type.

    >>> is_finite(0.5), is_finite(10**400), is_finite(float("nan")), is_finite("1")
    (True, False, False, False)
    """
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False
