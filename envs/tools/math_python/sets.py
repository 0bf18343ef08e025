r"""Notations of sets and intervals in one form: ``]1, 2[``, ``\{x \mid x > 3\}``, ``\mathbb{R}``, ``no solution``."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

_REAL = r"\\mathbb\s?(?:\{\s?R\s?\}|R)"
_ALL_REALS = re.compile(rf"(?:[a-zA-Z]\s?\\in\s?)?{_REAL}|(?:all |the )?(?:real numbers|reals)")
_WITHOUT = re.compile(rf"(?:[a-zA-Z]\s?\\in\s?)?{_REAL}\s?(?:\\setminus|\\backslash|-)\s?\\\{{([^{{}}]{{1,60}})\\\}}")
_LEFT_RIGHT = re.compile(r"\\(?:left|right)(?![a-zA-Z])\s?")
_NOTHING = re.compile(r"(?:the )?empty set|no (?:real )?solutions?", re.IGNORECASE)
_BUILDER = re.compile(rf"\\?\{{\s?([a-zA-Z])\s?(?:\\in\s?{_REAL})?\s?(?::|\\mid|\||\\colon)(.{{1,200}})\\?\}}")
_INTERVAL = re.compile(r"\s*([\[\]])([^\[\]]{1,200}[,;][^\[\]]{1,200}?)([\[\]])\s*")
_SIGNS = re.compile(r"<=|>=|(?<=[ \w]) !=(?!=)")
_MEANINGS = {"<=": r" \le ", ">=": r" \ge ", " !=": r" \ne "}
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_LONGEST = 1000


def set_notation(text: str) -> str:
    r"""Return an answer with sets and intervals as the parser reads them.

    >>> set_notation(r"\{x \in \mathbb{R} \mid x > 3\}"), set_notation(r"]1, 2] \cup [3, 4[")
    ('x > 3', '(1, 2]\\cup[3, 4)')
    >>> set_notation(r"\mathbb{R}"), set_notation("x >= 3")
    ('(-\\infty, \\infty)', 'x  \\ge  3')
    """
    if len(text) > _LONGEST:
        return text
    text = _LEFT_RIGHT.sub("", text)
    if _NOTHING.fullmatch(text):
        return r"\emptyset"
    if _ALL_REALS.fullmatch(text):
        return r"(-\infty, \infty)"
    if left_out := _WITHOUT.fullmatch(text):
        points = sorted(left_out[1].split(","), key=_size)
        ends = [r"-\infty", *points, r"\infty"]
        return r" \cup ".join(f"({low}, {high})" for low, high in itertools.pairwise(ends))
    text = _SIGNS.sub(lambda found: _MEANINGS[found[0]], text)
    if (builder := _BUILDER.fullmatch(text)) and builder[1] in builder[2]:
        return builder[2].removesuffix("\\").strip()
    return _with_round_brackets(text)


def _size(point: str) -> Fraction:
    """Return the value of a number, so that points can be sorted; 0 for any formula, whose order is kept."""
    return Fraction(point.strip()) if _NUMBER.fullmatch(point.strip()) else Fraction(0)


def _with_round_brackets(text: str) -> str:
    """Return intervals whose open ends are turned square brackets with round ones."""
    parts = [_INTERVAL.fullmatch(part) for part in text.split(r"\cup")]
    if all(part and part[1] + part[3] == "[]" for part in parts):
        return text
    found = [part and f"{'[('[part[1] == ']']}{part[2].strip()}{'])'[part[3] == '[']}" for part in parts]
    return r"\cup".join(filter(None, found)) if all(found) else text
