r"""Notations of sets and intervals in one form: ``]1, 2[``, ``\{x \mid x > 3\}``, ``\mathbb{R}``, ``no solution``."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from turngym.envs.tools.math_python.reading import CONSTANTS, Tree, holds

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


_INFINITY: Tree = ("sym", "infty")
_ZERO: Tree = ("num", Fraction(0))
_BELOW: Tree = ("-", _ZERO, _INFINITY)
_ORDERED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_TURNED = {**_ORDERED, "\\ne": "\\ne"}


def as_interval(tree: Tree) -> tuple[str, Tree] | None:
    """Return the letter of an inequality, and its values as an interval; None where it is no such inequality.

    >>> from turngym.envs.tools.math_python.reading import read_answer
    >>> as_interval(read_answer("0 < x < 12")) == ("x", read_answer("(0, 12)"))
    True
    """
    if tree[0] != "rel" or tree[1] not in _TURNED:
        return None
    sign, left, right = tree[1:]
    if left[0] == "rel":
        return _between(left, sign, right)
    if _is_letter(right) and not _is_letter(left):
        sign, left, right = _TURNED[sign], right, left
    if left[:2] == ("call", "abs") and _is_letter(left[2]) and not holds(right, left[2][1]) and sign in ("<", "\\le"):
        return left[2][1], ("seq", _end(sign, "(") + _end(sign, ")"), (("-", _ZERO, right), right))
    if not _is_letter(left) or holds(right, left[1]):
        return None
    if sign == "\\ne":
        return left[1], ("seq", "", (("seq", "()", (_BELOW, right)), ("seq", "()", (right, _INFINITY))))
    if sign in ("<", "\\le"):
        return left[1], ("seq", "(" + _end(sign, ")"), (_BELOW, right))
    return left[1], ("seq", _end(sign, "(") + ")", (right, _INFINITY))


def _between(first: Tree, sign: str, right: Tree) -> tuple[str, Tree] | None:
    first_sign, left, letter = first[1:]
    if not _is_letter(letter) or not {first_sign, sign} <= _ORDERED.keys():
        return None
    if (first_sign in (">", "\\ge")) != (sign in (">", "\\ge")):
        return None
    if left[0] == "rel" or holds(left, letter[1]) or holds(right, letter[1]):
        return None
    if sign in (">", "\\ge"):
        left, right, first_sign, sign = right, left, _TURNED[sign], _TURNED[first_sign]
    return letter[1], ("seq", _end(first_sign, "(") + _end(sign, ")"), (left, right))


def _end(sign: str, bracket: str) -> str:
    return bracket if sign in "<>" else {"(": "[", ")": "]"}[bracket]


def _is_letter(tree: Tree) -> bool:
    return bool(tree[0] == "sym" and tree[1] not in CONSTANTS)
