"""Inequalities as the intervals that they describe."""

from __future__ import annotations

from fractions import Fraction

from turngym.envs.tools.math_python.reading import CONSTANTS, Tree, holds

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
