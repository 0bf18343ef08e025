"""Results as data frames and, in notebooks, as HTML."""

from __future__ import annotations

import html
import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from turngym.errors import MissingExtra

_PACKAGES = ("polars", "pandas")
_PRE = '<pre style="white-space: pre-wrap">{}</pre>'


def data_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as a data frame of polars or pandas, preferring the one already imported.

    Raises:
        MissingExtra: Neither is installed.
    """
    rows = list(rows)
    columns = dict.fromkeys(name for row in rows for name in row)
    data = {name: [row.get(name) for row in rows] for name in columns}
    for package in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        if find_spec(package) is not None:
            more = {"strict": False} if package == "polars" else {}  # a column may hold 1 and 0.5
            return importlib.import_module(package).DataFrame(data, **more)
    raise MissingExtra("data frames need polars or pandas, and neither is installed: pip install polars.")


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row that are numbers, texts or None."""
    return {name: value for name, value in row.items() if value is None or isinstance(value, str | int | float)}


def html_table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return an HTML table; all texts are escaped.

    >>> html_table("A & B", [{"action": "<b>", "reward": 0.5}]).partition("<table>")[0]
    '<p><b>A &amp; B</b></p>'
    """
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in (rows[0] if rows else ()))
    body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows)
    return f"<p><b>{html.escape(title)}</b></p><table><tr>{head}</tr>{body}</table>"


def html_text(title: str, text: str) -> str:
    """Return a text in HTML, with its lines; it is escaped."""
    return f"<p><b>{html.escape(title)}</b></p>{_PRE.format(html.escape(text))}"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<td style="text-align: left">{_PRE.format(html.escape(value))}</td>'
    return f"<td>{html.escape(f'{value:.3f}' if isinstance(value, float) else str(value))}</td>"
