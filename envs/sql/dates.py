"""Functions of dates without the clock: those of SQLite, but for what depends on today or on the time zone."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_PLACES: Mapping[str, int] = {"date": 0, "julianday": 0, "strftime": 1}
"""Name -> place of the argument that is a date."""
_REFUSED = ("now", "localtime", "utc", "subsec", "subsecond")
_LOCAL = threading.local()
_MOST_ARGUMENTS = 6


class DateError(ValueError):
    """A date that depends on when or where it is computed, or none at all."""


def _computed(name: str, *arguments: Any) -> Any:
    place = _PLACES[name]
    words = [str(each).strip().lower() for each in arguments]
    if not place < len(arguments) <= _MOST_ARGUMENTS or any(each in _REFUSED for each in words):
        raise DateError(name)
    link: sqlite3.Connection | None = getattr(_LOCAL, "link", None)
    if link is None:
        link = _LOCAL.link = sqlite3.connect(":memory:", isolation_level=None)
    return link.execute(f"SELECT {name}({', '.join('?' * len(arguments))})", arguments).fetchone()[0]


DATES: Mapping[str, Callable[..., Any]] = {name: partial(_computed, name) for name in _PLACES}
"""Name -> function, for :meth:`sqlite3.Connection.create_function`."""
