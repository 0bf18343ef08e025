"""Whether two mathematical answers mean the same.

Rational numbers are compared exactly. Everything else is compared as functions of its letters, by their values at
several points with 30 digits (mpmath): no simplifier can hang, nothing is evaluated as a program. Lists and sets are
compared in any order, tuples, intervals and matrices part by part; what is no mathematics, as words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from turngym.envs.tools.math_exact import exact
from turngym.envs.tools.math_reading import Tree, Unreadable, read_answer
from turngym.errors import MissingExtra, missing_extra

_POINTS = 4
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")
_KNOWN_WORDS = re.compile(
    r"^(?:sqrt|sin|cos|tan|cot|sec|csc|log|exp|abs|inf|end|[pbv]?matrix|arc\w+|sinh|cosh|tanh|asin|acos|atan)$"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[./]\d+)?")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|operatorname)\s*\{([^{}]*)\}")
_UNIT = re.compile(r"^\s*\\?\$?\s*([-+]?[\d.,/ ]*\d)\s*(?:\\?%|[a-zA-Z][a-zA-Z. ]*)?\.?\s*$")
_DECORATION = re.compile(r"[\s\\${}().,;:!?\"'`*_]+")


def same_answer(given: str, gold: str) -> bool:
    r"""Return whether an answer is right.

    >>> same_answer("0.5", r"\frac{1}{2}"), same_answer("(3, 2)", "(2,3)"), same_answer(r"x^2+2x+1", "(x+1)^2")
    (True, False, True)

    Raises:
        MissingExtra: Neither is rational, and the package mpmath is missing.
    """
    given, gold = given.strip()[:10_000], gold.strip()
    if given and _plain(given) == _plain(gold):
        return True
    if _is_text(gold):
        return False
    unit = _UNIT.match(given)
    if unit and not re.search("[a-zA-Z]", _TEXT.sub("", gold)):
        given = unit[1]
    elif _is_text(given):
        return False
    try:
        first, second = read_answer(given), read_answer(_TEXT.sub("", gold))
        if first[0] == second[0] == "rel" and same_tree(first, second):
            return True
        return same_tree(_stripped(first), _stripped(second))
    except (Unreadable, RecursionError, OverflowError, ZeroDivisionError):
        return False


def _plain(text: str) -> str:
    return _DECORATION.sub(" ", _TEXT.sub(r" \1 ", text)).strip().casefold()


def _is_text(text: str) -> bool:
    """Return whether a text holds words, which must not be read as products of letters."""
    bare = _TEXT.sub("", text)
    if not bare.strip(" $\\()."):
        return True
    return not all(map(_KNOWN_WORDS.match, _WORD.findall(bare)))


def _stripped(tree: Tree) -> Tree:
    """Return the right side where the left one only names it: ``x = 5``, ``f(x) = 2x``."""
    if tree[:2] == ("seq", ""):
        is_named = all(part[:2] == ("rel", "=") and part[2][0] == "sym" for part in tree[2])
        if is_named and len({part[2] for part in tree[2]}) == 1:
            return ("seq", "", tuple(part[3] for part in tree[2]))
    if tree[:2] == ("rel", "=") and (tree[2][0] == "sym" or (tree[2][0] == "*" and tree[2][1][0] == "sym")):
        return tree[3] if isinstance(tree[3], tuple) else tree
    if tree[:2] == ("rel", "\\in") and tree[2][0] == "sym":
        right: Tree = tree[3]
        return right
    return tree


def same_tree(given: Tree, gold: Tree) -> bool:
    """Return whether two trees mean the same."""
    given, gold = _expanded(given), _expanded(gold)
    if gold[0] == "seq" or given[0] == "seq":
        return _same_sequence(given, gold)
    if gold[0] == "rel" or given[0] == "rel":
        return _same_relation(given, gold)
    known = exact(gold), exact(given)
    if known[0] is not None and known[1] is not None:
        return known[0] == known[1]
    return _same_values(given, gold)


def _expanded(tree: Tree) -> Tree:
    """Return a sum with plus or minus as the list of both."""
    if tree[0] == "pm":
        return ("seq", "", (("+", tree[1], tree[2]), ("-", tree[1], tree[2])))
    if tree[:2] == ("seq", ""):
        parts = [_expanded(part) for part in tree[2]]
        return ("seq", "", tuple(each for part in parts for each in (part[2] if part[:2] == ("seq", "") else (part,))))
    return tree


def _same_sequence(given: Tree, gold: Tree) -> bool:
    if given[0] != gold[0]:
        other, sequence = (given, gold) if gold[0] == "seq" else (gold, given)
        return sequence[1] in ("", "set") and len(sequence[2]) == 1 and same_tree(other, sequence[2][0])
    loose = {"", "set"}
    if len(given[2]) != len(gold[2]) or len(gold[2]) > 64:
        return False
    if given[1] in loose and gold[1] in loose:
        return _same_in_any_order(list(given[2]), gold[2])
    if given[1] != gold[1] and {given[1], gold[1]} != {"", "()"}:
        return False
    return all(itertools.starmap(same_tree, zip(given[2], gold[2], strict=True)))


def _same_in_any_order(given: list[Tree], gold: Sequence[Tree]) -> bool:
    for wanted in gold:
        found = next((place for place, each in enumerate(given) if same_tree(each, wanted)), None)
        if found is None:
            return False
        del given[found]
    return True


def _same_relation(given: Tree, gold: Tree) -> bool:
    if given[0] != "rel" or gold[0] != "rel":
        return False
    turned = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "=": "=", "\\ne": "\\ne"}
    sign, left, right = given[1:]
    pairs = [(sign, left, right), (turned.get(sign, ""), right, left)]
    if any(a == gold[1] and same_tree(b, gold[2]) and same_tree(c, gold[3]) for a, b, c in pairs):
        return True
    if gold[1] != "=" or sign != "=" or "rel" in (left[0], right[0], gold[2][0], gold[3][0]):
        return False
    return _same_curve(("-", left, right), ("-", gold[2], gold[3]))


def _same_curve(given: Tree, gold: Tree) -> bool:
    """Return whether two equations differ by a constant factor alone."""
    rows = [_values(tree) for tree in (given, gold)]
    if any(row is None for row in rows) or _letters(given) != _letters(gold):
        return False
    first, second = rows
    assert first is not None and second is not None
    ratios = [a / b for a, b in zip(first, second, strict=True) if b]
    return len(ratios) == len(second) and bool(ratios[0]) and all(_close(ratio, ratios[0]) for ratio in ratios)


def _same_values(given: Tree, gold: Tree) -> bool:
    try:
        first, second = _values(given), _values(gold)
    except MissingExtra:
        if exact(gold) is None:
            raise
        return False  # an odd way to write a plain number, which nobody here can read
    if first is None or second is None:
        return False
    return all(itertools.starmap(_close, zip(first, second, strict=True)))


def _close(first: Any, second: Any) -> bool:
    return bool(abs(first - second) <= 1e-9 * max(1e-9, abs(first), abs(second)))


def _letters(tree: Tree) -> set[str]:
    if tree[0] == "sym":
        return {tree[1]}
    return {name for part in tree[1:] if isinstance(part, tuple) for name in _letters(part)}


def _values(tree: Tree) -> list[Any] | None:
    """Return the values at fixed points, each letter at places of its own; None where one is no number."""
    mpmath = _library()
    with mpmath.workdps(30):
        found = []
        for point in range(_POINTS):
            try:
                value = _evaluate(tree, point, mpmath)
            except (ValueError, ZeroDivisionError, OverflowError, TypeError):
                return None
            if not mpmath.isfinite(value):
                return None
            found.append(value)
        return found


def _library() -> Any:
    try:
        import mpmath
    except ModuleNotFoundError:
        raise missing_extra("comparing answers that are no rational numbers", "mpmath", "math") from None
    return mpmath


def require_comparison(answers: Iterable[str]) -> None:
    """Raise unless all of these answers can be compared here.

    Raises:
        MissingExtra: Some are no plain numbers, and mpmath is missing.
    """
    if not all(_PLAIN_NUMBER.fullmatch(answer.strip()) for answer in answers):
        _library()


def _evaluate(tree: Tree, point: int, mp: Any) -> Any:
    kind = tree[0]
    if kind == "num":
        return mp.mpf(tree[1].numerator) / tree[1].denominator
    if kind == "sym":
        return _letter(tree[1], point, mp)
    if kind == "call":
        return _call(tree[1], _evaluate(tree[2], point, mp), mp)
    parts = [_evaluate(part, point, mp) for part in tree[1:]]
    if kind == "!":
        if not abs(parts[0]) < 10**6:
            raise ValueError("a giant")
        return mp.gamma(parts[0] + 1)
    if kind == "^":
        if parts[1] and abs(parts[1]) * (1 + abs(mp.log(abs(parts[0]) + 1))) > 10**7:
            raise ValueError("a giant")
        return mp.power(*parts)
    left, right = parts
    return (
        left + right if kind == "+" else left - right if kind == "-" else left * right if kind == "*" else left / right
    )


def _letter(name: str, point: int, mp: Any) -> Any:
    if name == "pi":
        return +mp.pi
    if name == "e":
        return +mp.e
    if name == "i":
        return mp.mpc(0, 1)
    number = sum(ord(letter) * 31**place for place, letter in enumerate(name[:8]))
    return mp.frac(mp.sqrt(number * 4 + point * 2 + 3)) + mp.mpf(point + 1) / 3 + mp.mpf("0.1")


def _call(name: str, value: Any, mp: Any) -> Any:
    full = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "log": "ln", "abs": "fabs"}.get(name, name)
    if full == "fabs":
        return abs(value)
    if full in ("exp", "sinh", "cosh") and abs(value) > 10**5:
        raise ValueError("a giant")
    return getattr(mp, full)(value)
