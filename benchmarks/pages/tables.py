"""Tables of numbers with intervals: drawn and in figures, sortable by a script, whole without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from turngym.agents.intervals import Estimate
from turngym.trainers.core.wording import UNKNOWN
from turngym.web.html import Html, join, tag

Direction = Literal["ascending", "descending"]


@dataclass(frozen=True)
class Axis:
    """The part of the number line that a bar shows.

    Args:
        low: Left end.
        high: Right end, above it.
        zero: Where bars begin.
    """

    low: float
    high: float
    zero: float = 0.0

    def place(self, value: float) -> str:
        """Return where a number lies, as CSS has it; numbers outside lie at the ends.

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
        title: What it means, where the head alone does not say it.
    """

    name: str
    first: Direction | None = "descending"
    is_number: bool = True
    title: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell.

    Args:
        content: What it shows.
        value: What it is sorted by; None is last in either direction.
    """

    content: str
    value: float | str | None = None


@dataclass(frozen=True)
class Line:
    """A row of a sortable table.

    Args:
        key: What marks everything on the page that belongs to it, for the filter.
        cells: A cell for each column.
        words: Words by which the filter finds it, beside those that it shows.
    """

    key: str
    cells: Sequence[Cell]
    words: str = ""


def sortable_table(
    caption: str, columns: Sequence[Column], lines: Sequence[Line], sorted_by: int | None = None
) -> Html:
    """Return a table that the script of this package makes sortable, and whose rows are cards on a narrow screen.

    Args:
        caption: What it shows.
        columns: Its columns.
        lines: Its rows, in the order in which they are without a script.
        sorted_by: Column by which they are in order, if they are.
    """
    heads = [_head(column, index == sorted_by) for index, column in enumerate(columns)]
    rows = [
        tag("tr", *map(_cell, columns, line.cells), role="row", data_row=line.key, data_words=line.words)
        for line in lines
    ]
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads, role="row"), role="rowgroup"),
        tag("tbody", *rows, role="rowgroup"),
        role="table",
        class_="sortable board",
    )
    return tag("div", tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption))


def _head(column: Column, is_sorted: bool) -> Html:
    attributes = {"scope": "col", "role": "columnheader"}
    if column.is_number:
        attributes["class_"] = "n"
    if column.first is not None:
        attributes["data_sort"] = column.first
        if is_sorted:
            attributes["aria_sort"] = column.first
    if column.title:
        attributes["title"] = column.title
    return tag("th", column.name, **attributes)


def _cell(column: Column, cell: Cell) -> Html:
    attributes = {"role": "cell", "data_label": column.name}
    if column.is_number:
        attributes["class_"] = "n"
    if cell.value is not None and not (isinstance(cell.value, float) and math.isnan(cell.value)):
        attributes["data_value"] = str(cell.value)
    return tag("td", tag("span", cell.content), **attributes)


def estimate_cell(estimate: Estimate | None, axis: Axis, scale: float = 1.0, digits: int = 1) -> Cell:
    """Return a number with its interval, in figures and drawn.

    Args:
        estimate: The number; None where there is none.
        axis: What the bar shows, in the units of the estimate.
        scale: The figures show the number times this.
        digits: Digits after the point.
    """
    if estimate is None or not math.isfinite(estimate.value):
        return Cell(UNKNOWN)
    value = tag("b", figure(scale * estimate.value, digits))
    interval = tag("span", interval_text(estimate, scale, digits), class_="ci")
    return Cell(tag("span", value, interval, bar(estimate, axis), class_="estimate"), estimate.value)


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


def bar(estimate: Estimate, axis: Axis) -> Html:
    """Return a drawing of a number and its interval; it is hidden from those who read the figures beside it."""
    start, end = sorted((axis.zero, estimate.value))
    fill = tag("span", class_="fill", style=f"--from:{axis.place(start)};--to:{axis.place(end)}")
    low, high = (end if math.isfinite(end) else estimate.value for end in (estimate.low, estimate.high))
    span = tag("span", class_="span", style=f"--low:{axis.place(low)};--high:{axis.place(high)}")
    zero = tag("span", class_="zero", style=f"--zero:{axis.place(axis.zero)}") if axis.low < axis.zero else Html()
    return tag("span", fill, zero, span, class_="bar", aria_hidden="true")


def facet(title: str, rows: Sequence[tuple[str, str, Estimate]], axis: Axis, scale: float, digits: int = 0) -> Html:
    """Return bars of several agents under one heading.

    Args:
        title: The heading.
        rows: Key and name of each agent, and its number.
        axis: What the bars show.
        scale: The figures show the numbers times this.
        digits: Digits after the point.
    """
    items = []
    for key, name, estimate in rows:
        if math.isfinite(estimate.value):
            shown, told = bar(estimate, axis), figure(scale * estimate.value, digits)
        else:
            shown, told = tag("span", "not played", class_="quiet"), UNKNOWN
        hint = f"{name}: {told}, 95 % interval {interval_text(estimate, scale)}, {estimate.count:,} episodes"
        items.append(tag("li", tag("span", name), shown, tag("span", told), data_row=key, title=hint))
    return tag("section", tag("h4", title), tag("ul", *items), class_="facet")


def filter_box(hint: str) -> Html:
    """Return a box that the script of this package shows and uses to hide rows."""
    field = tag("input", type="search", placeholder=hint, aria_label="Filter the rows", autocomplete="off")
    return tag("div", field, tag("output", class_="quiet", aria_live="polite"), class_="filter", hidden="")


def facts(pairs: Sequence[tuple[str, str]]) -> Html:
    """Return names and values side by side; those without a value are left out."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value), class_="facts")


def badge(text: str) -> Html:
    """Return a short status."""
    return tag("span", text, class_=join(["badge ", text.replace(" ", "-")]))
