"""Formatting numbers and counts for reports."""

from __future__ import annotations

import math
import re

from turngym.agents.intervals import Estimate

UNKNOWN = "–"


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.725)
    '72.5 %'
    """
    return f"{100 * share:.1f} %"


def signed(value: float, digits: int = 1) -> str:
    """Return a number with its sign; zero has none.

    >>> signed(31.46), signed(-2.0), signed(-0.01)
    ('+31.5', '−2.0', '0.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def points(estimate: Estimate) -> str:
    """Return a difference of shares in points, with its interval.

    >>> points(Estimate(0.315, 0.04, 0.24, 0.39, 200, 200, ""))
    '+31.5 points, 95 % interval [+24.0, +39.0]'
    """
    low, high = signed(100 * estimate.low), signed(100 * estimate.high)
    return f"{signed(100 * estimate.value)} points, 95 % interval [{low}, {high}]"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "instance"), counted(12345, "instance"), counted(0, "trajectory", "trajectories")
    ('1 instance', '12,345 instances', '0 trajectories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def with_interval(estimate: Estimate) -> str:
    """Return a mean with its interval.

    >>> with_interval(Estimate(0.5, 0.1, 0.25, 0.75, 9, 9, ""))
    '0.50 [0.25, 0.75]'
    """
    ends = estimate.no_interval or f"{estimate.low:.2f}, {estimate.high:.2f}"
    return f"{estimate.value:.2f} [{ends}]".replace("-", "−")


def number(value: object) -> str:
    """Return a number in readable form.

    >>> number(12345), number(0.000123456), number(float("nan")), number("text")
    ('12,345', '0.0001235', 'not a number', 'text')
    """
    if isinstance(value, float) and math.isnan(value):
        return "not a number"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def unbroken(text: str) -> str:
    r"""Return text whose intervals and units stay on one line.

    >>> unbroken("50.0 % [40.0, 60.0]")
    '50.0\xa0% [40.0,\xa060.0]'
    """
    return re.sub("(?<=[,=]) | (?=[%=])", "\N{NO-BREAK SPACE}", text)
