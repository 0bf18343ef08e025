"""Content of pages with tables of numbers and intervals, sortable by a script and complete without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from turngym.agents.intervals import Estimate
from turngym.trainers.core.wording import UNKNOWN, counted
from turngym.web.page import asset
from turngym.web.page import page as whole_page

_Direction = Literal["ascending", "descending"]


def page(title: str, template: str, subtitle: str, **values: Any) -> str:
    """Return a page with sortable tables.

    Args:
        title: Heading of the page.
        template: Name of a template of this package.
        subtitle: A line below the heading.
        values: Variables of the template.
    """
    data = "turngym.benchmarks.pages:"
    script, style = asset(f"{data}tables.js"), asset(f"{data}tables.css")
    return whole_page(title, data + template, script=script, style=style, subtitle=subtitle, counted=counted, **values)


@dataclass(frozen=True)
class Axis:
    """The part of the number line that a bar shows.

    Args:
        low: Left end.
        high: Right end, above it.
        zero: Origin of the bars.
    """

    low: float
    high: float
    zero: float = 0.0

    def place(self, value: float) -> str:
        """Return where a number is, as CSS has it; numbers outside lie at the ends.

        >>> Axis(-50, 150).place(0), Axis(0, 1).place(2)
        ('25.00%', '100.00%')
        """
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * share:.2f}%"


def axis_around(estimates: Sequence[Estimate], low: float, high: float) -> Axis:
    """Return an axis from ``low`` to ``high``, longer where an interval needs it.

    >>> axis_around([Estimate(1, 0, -5, 130, 1, 1, "")], 0, 100)
    Axis(low=-5, high=130, zero=0.0)
    """
    known = [each for each in estimates if math.isfinite(each.low) and math.isfinite(each.high)]
    return Axis(min([low, *(each.low for each in known)]), max([high, *(each.high for each in known)]))


@dataclass(frozen=True)
class Column:
    """A column of a sortable table.

    Args:
        name: Its head.
        first: In which direction it is sorted first; None for a column that cannot be sorted.
        is_number: Whether it is set flush right.
        title: Explanation, if the heading is not enough.
    """

    name: str
    first: _Direction | None = "descending"
    is_number: bool = True
    title: str = ""


class Bar(NamedTuple):
    """A drawing of a number and its interval, as custom properties of CSS.

    Args:
        fill: Ends of the bar.
        span: Ends of the interval.
        zero: Origin of the bars, if not the left end.
    """

    fill: str
    span: str
    zero: str


@dataclass(frozen=True)
class Cell:
    """A cell.

    Args:
        text: Content.
        value: Sort key; None is last in either direction.
        kind: CSS class of the text.
        link: Place on the page that the text links to.
        note: A quiet line below the text.
        interval: Interval of the number, in figures.
        bar: Drawing of the number.
    """

    text: str
    value: float | str | None = None
    kind: str = ""
    link: str = ""
    note: str = ""
    interval: str = ""
    bar: Bar | None = None

    @property
    def order(self) -> float | str | None:
        """Sort key of the cell; None for no number."""
        is_nan = isinstance(self.value, float) and math.isnan(self.value)
        return None if is_nan else self.value


@dataclass(frozen=True)
class Line:
    """A row of a sortable table.

    Args:
        key: Marker of all its elements on the page, for the filter.
        cells: A cell for each column.
        words: Further words by which the filter finds it.
    """

    key: str
    cells: Sequence[Cell]
    words: str = ""


@dataclass(frozen=True)
class Table:
    """A sortable table.

    Args:
        caption: Content.
        columns: Its columns.
        lines: Its rows, in the order that they have without a script.
        sorted_by: Column by which they are in order, if they are.
    """

    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    sorted_by: int | None = None


def estimate_cell(estimate: Estimate | None, axis: Axis, scale: float = 1.0, digits: int = 1) -> Cell:
    """Return a number with its interval, in figures and drawn.

    Args:
        estimate: The number; None if there is none.
        axis: Value of the bar in units of the estimate.
        scale: The figures show the number times this.
        digits: Digits after the point.
    """
    if estimate is None or not math.isfinite(estimate.value):
        return Cell(UNKNOWN)
    return Cell(
        figure(scale * estimate.value, digits),
        estimate.value,
        interval=interval_text(estimate, scale, digits),
        bar=bar(estimate, axis),
    )


def rank_cell(best: int, worst: int) -> Cell:
    """Return a rank, which is a range where intervals overlap."""
    return Cell(str(best) if best == worst else f"{best}–{worst}", best + worst / 1e6, "ranks")


def figure(value: float, digits: int = 1) -> str:
    """Return a number with a fixed count of digits and a real minus sign.

    >>> figure(-1.26), figure(12345.6, 0), figure(float("nan"))
    ('−1.3', '12,346', '–')
    """
    if not math.isfinite(value):
        return UNKNOWN
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def interval_text(estimate: Estimate, scale: float = 1.0, digits: int = 1) -> str:
    """Return the ends of an interval.

    >>> interval_text(Estimate(0.5, 0.1, 0.25, 0.75, 9, 9, ""), 100)
    '25.0 to 75.0'
    """
    ends = f"{figure(scale * estimate.low, digits)} to {figure(scale * estimate.high, digits)}"
    return estimate.no_interval or ends


def bar(estimate: Estimate, axis: Axis) -> Bar:
    """Return a drawing of a number and its interval."""
    start, end = sorted((axis.zero, estimate.value))
    low, high = (end if math.isfinite(end) else estimate.value for end in (estimate.low, estimate.high))
    return Bar(
        f"--from:{axis.place(start)};--to:{axis.place(end)}",
        f"--low:{axis.place(low)};--high:{axis.place(high)}",
        f"--zero:{axis.place(axis.zero)}" if axis.low < axis.zero else "",
    )


class FacetRow(NamedTuple):
    """The bar of one agent.

    Args:
        key: Marker of the agent's rows on the page.
        name: Name of the agent.
        figure: Its number.
        hint: The number in words, with its interval.
        bar: Its drawing; None if nothing was played.
    """

    key: str
    name: str
    figure: str
    hint: str
    bar: Bar | None


class Facet(NamedTuple):
    """Bars of several agents under one heading."""

    title: str
    rows: Sequence[FacetRow]


def facet(title: str, rows: Sequence[tuple[str, str, Estimate]], axis: Axis, scale: float, digits: int = 0) -> Facet:
    """Return bars of several agents.

    Args:
        title: The heading.
        rows: Key and name of each agent, and its number.
        axis: Values of the bars.
        scale: The figures show the numbers times this.
        digits: Digits after the point.
    """
    found = []
    for key, name, estimate in rows:
        is_known = math.isfinite(estimate.value)
        shown = figure(scale * estimate.value, digits) if is_known else UNKNOWN
        hint = f"{name}: {shown}, 95 % interval {interval_text(estimate, scale)}, {estimate.count:,} episodes"
        found.append(FacetRow(key, name, shown, hint, bar(estimate, axis) if is_known else None))
    return Facet(title, found)
