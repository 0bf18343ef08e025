"""Texts for fields with their own format: dates, times, colours and numbers, as the browser takes them."""

from __future__ import annotations

import re
from collections.abc import Callable

_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_MONTH_FIRST = re.compile(r"(\d{1,2})[-/](\d{1,2})[-/](\d{4})")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MONTH = re.compile(r"(?:(\d{4})[-/](\d{1,2})|(\d{1,2})[-/](\d{4}))")
_TIME = re.compile(r"(\d{1,2}):(\d{2})(:\d{2}(?:\.\d{1,3})?)?(?: ?([ap])\.?m\.?)?", re.IGNORECASE)
_WEEK = re.compile(r"(\d{4})-?W(\d{1,2})", re.IGNORECASE)
_MOMENT = re.compile(r"([^T, ]+)(?:T|, | )(.+)")
_HEX = re.compile(r"#?(?:([0-9a-f]{3})|([0-9a-f]{6}))", re.IGNORECASE)
_RGB = re.compile(r"rgb\( ?(\d{1,3}) ?, ?(\d{1,3}) ?, ?(\d{1,3}) ?\)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,3})?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def _date(text: str) -> str:
    for pattern, order in ((_YEAR_FIRST, (1, 2, 3)), (_MONTH_FIRST, (3, 1, 2)), (_DAY_FIRST, (3, 2, 1))):
        if found := pattern.fullmatch(text):
            year, month, day = (int(found[place]) for place in order)
            return f"{year:04d}-{month:02d}-{day:02d}"
    return ""


def _time(text: str) -> str:
    found = _TIME.fullmatch(text)
    if not found:
        return ""
    hour = int(found[1])
    if found[4]:
        if not 1 <= hour <= 12:
            return ""
        hour = hour % 12 + 12 * (found[4].lower() == "p")
    return f"{hour:02d}:{found[2]}{found[3] or ''}"


def _moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    parts = (_date(found[1]), _time(found[2].strip())) if found else ("", "")
    return "T".join(parts) if all(parts) else ""


def _month(text: str) -> str:
    found = _MONTH.fullmatch(text)
    return f"{found[1] or found[4]}-{int(found[2] or found[3]):02d}" if found else ""


def _week(text: str) -> str:
    found = _WEEK.fullmatch(text)
    return f"{found[1]}-W{int(found[2]):02d}" if found else ""


def _color(text: str) -> str:
    if found := _HEX.fullmatch(text):
        return f"#{found[2] or ''.join(2 * digit for digit in found[1])}".lower()
    if found := _RGB.fullmatch(text):
        parts = [int(part) for part in found.groups()]
        return "".join(["#", *(f"{part:02x}" for part in parts)]) if max(parts) < 256 else ""
    return ""


def _number(text: str) -> str:
    bare = _THOUSANDS.sub("", text)
    return bare.removeprefix("+") if _NUMBER.fullmatch(bare) else ""


FORMS: dict[str, tuple[Callable[[str], str], str]] = {
    "date": (_date, "a date such as 2017-12-21 or 12/21/2017"),
    "time": (_time, "a time such as 14:30 or 2:30 PM"),
    "datetime-local": (_moment, "a date and a time such as 2017-12-21 14:30"),
    "month": (_month, "a month such as 2017-12"),
    "week": (_week, "a week such as 2017-W51"),
    "color": (_color, "a colour such as #ff0080"),
    "range": (_number, "a number"),
    "number": (_number, "a number"),
}
"""Type of a field -> how a text is rewritten, with an empty text for one that cannot be, and what the field takes."""


def rewritten(kind: str, text: str) -> str | None:
    """Return a text as a field of that type takes it; None where it takes no such text.

    >>> rewritten("date", "12/21/2017"), rewritten("time", "2:30 PM"), rewritten("color", "#F08")
    ('2017-12-21', '14:30', '#ff0088')
    >>> rewritten("number", "many")
    """
    if kind not in FORMS or not text:
        return text
    return FORMS[kind][0](" ".join(text.split())) or None
