"""Functions of dates without the clock: those of SQLite, for dates and changes of them that are written out."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_PLACES: Mapping[str, int] = {"date": 0, "julianday": 0, "strftime": 1}
"""Name -> place of the argument that is a date."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?", re.ASCII)
_CHANGE = re.compile(
    r"[+-]?\d{1,6}(?:\.\d{1,3})? (?:day|month|year|hour|minute|second)s?|start of (?:day|month|year)|weekday [0-6]",
    re.ASCII,
)
_LOCAL = threading.local()
_MOST_ARGUMENTS = 6


class DateError(ValueError):
    """A date that depends on when or where it is computed, or none at all."""


def _computed(name: str, *arguments: Any) -> Any:
    place = _PLACES[name]
    if not place < len(arguments) <= _MOST_ARGUMENTS or not all(map(_is_text, arguments[:place])):
        raise DateError(name)
    date, changes = arguments[place], arguments[place + 1 :]
    if not _is_date(date) or not all(isinstance(each, str) and _CHANGE.fullmatch(each) for each in changes):
        raise DateError(name)
    link: sqlite3.Connection | None = getattr(_LOCAL, "link", None)
    if link is None:
        link = _LOCAL.link = sqlite3.connect(":memory:", isolation_level=None)
    return link.execute(f"SELECT {name}({', '.join('?' * len(arguments))})", arguments).fetchone()[0]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_date(value: Any) -> bool:
    """Return whether a value is a day, a number of days as julianday gives it, or NULL."""
    return value is None or isinstance(value, float) or (isinstance(value, str) and bool(_DATE.fullmatch(value)))


DATES: Mapping[str, Callable[..., Any]] = {name: partial(_computed, name) for name in _PLACES}
"""Name -> function, for :meth:`sqlite3.Connection.create_function`."""
