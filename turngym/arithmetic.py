"""Arithmetic with the same result on every supported Python version, and untrusted numbers of any size."""

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any


def float_sum(values: Iterable[float]) -> float:
    """Add numbers from left to right, rounding after each.

    Since Python 3.12 the built-in ``sum`` compensates rounding errors, so its last bits differ between versions. Rules,
    rewards and published numbers use this function instead.

    >>> float_sum([0.1] * 10), float_sum([])
    (0.9999999999999999, 0)
    """
    return functools.reduce(operator.add, values, 0)


def as_float(value: Any) -> float:
    """Convert to float; a number that is too large becomes infinite instead of raising OverflowError.

    >>> as_float(3), as_float(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_finite(value: Any) -> bool:
    """Return whether a value of any type is a finite number within float range.

    >>> is_finite(0.5), is_finite(10**400), is_finite(float("nan")), is_finite("1")
    (True, False, False, False)
    """
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False
