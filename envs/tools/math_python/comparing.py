"""Comparing the trees of two answers: lists, intervals and equations part by part, formulas by their values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from turngym.envs.tools.math_python.exact import exact
from turngym.envs.tools.math_python.limits import Steps
from turngym.envs.tools.math_python.reading import Tree, parts_of, unsigned
from turngym.envs.tools.math_python.sets import as_interval
from turngym.envs.tools.math_python.values import DIGITS, POINTS, library, value_at
from turngym.errors import MissingExtra

_MOST_PARTS = 64
_ROUNDED = 1e-9
"""Relative error of a plain decimal for a number that no decimal equals."""
_SETTLED = 1e-6
"""Relative change between two precisions below which a value is one, and not what cancellation left."""
_SHRUNK = 0.65
"""Share of the digits of a precision by which a difference must be smaller than what it is a difference of."""
_ZERO: Tree = ("num", Fraction(0))
_TURNED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "=": "=", "\\ne": "\\ne"}


class Judge:
    """Compares the trees of one answer, at a cost that is limited.

    Args:
        must_be_worked_out: Whether a number must be written as one where the right answer is.
        steps: Step budget.
    """

    def __init__(self, must_be_worked_out: bool, steps: Steps) -> None:
        self._must_be_worked_out, self._steps = must_be_worked_out, steps
        # by the id of a tree, which is kept with its result so that no other gets its id
        self._lists: dict[int, tuple[Tree, Tree]] = {}
        self._known: dict[int, tuple[Tree, Fraction | None]] = {}
        self._found: dict[tuple[int, int, int, bool], tuple[Tree, Any]] = {}

    def same(self, given: Tree, gold: Tree) -> bool:
        """Return whether two trees mean the same.

        Raises:
            MissingExtra: Neither is rational, and the package mpmath is missing.
            TooCostly: It takes too many steps.
        """
        self._steps.take(1)
        given, gold = self._expanded(given), self._expanded(gold)
        if "rel" in (gold[0], given[0]):
            return self._same_relation(given, gold)
        if "seq" in (gold[0], given[0]):
            return self._same_sequence(given, gold)
        if self._must_be_worked_out and is_number(gold) and not (is_number(given) and _is_as_short(given, gold)):
            return False
        known = self._exact(gold), self._exact(given)
        if known[0] is not None and known[1] is not None:
            return known[0] == known[1]
        return given == gold or self._same_values(given, gold)

    def _expanded(self, tree: Tree) -> Tree:
        if id(tree) not in self._lists:
            self._lists[id(tree)] = tree, _expanded(tree)
        return self._lists[id(tree)][1]

    def _same_sequence(self, given: Tree, gold: Tree) -> bool:
        if given[0] != gold[0]:
            sequence = gold if gold[0] == "seq" else given
            if sequence[1] not in ("", "set") or len(sequence[2]) != 1 or _is_set(sequence[2][0]):
                return False
            return self.same(given, gold[2][0]) if sequence is gold else self.same(given[2][0], gold)
        loose = {"", "set"}
        if len(given[2]) != len(gold[2]) or len(gold[2]) > _MOST_PARTS:
            return False
        if given[1] in loose and gold[1] in loose:
            return self._same_in_any_order(_elements(given), _elements(gold))
        if given[1] != gold[1] and {given[1], gold[1]} != {"", "()"}:
            return False
        return all(itertools.starmap(self._same_part, zip(given[2], gold[2], strict=True)))

    def _same_part(self, given: Tree, gold: Tree) -> bool:
        return _is_set(given) == _is_set(gold) and self.same(given, gold)

    def _same_in_any_order(self, given: list[Tree], gold: Sequence[Tree]) -> bool:
        for wanted in gold:
            found = next((place for place, each in enumerate(given) if self._same_part(each, wanted)), None)
            if found is None:
                return False
            del given[found]
        return True

    def _same_relation(self, given: Tree, gold: Tree) -> bool:
        first, second = as_interval(given), as_interval(gold)
        if first and second:
            return first[0] == second[0] and self.same(first[1], second[1])
        if given[0] != "rel" or gold[0] != "rel":
            interval = first or second
            return interval is not None and self.same(*((interval[1], gold) if first else (given, interval[1])))
        sign, left, right = given[1:]
        pairs = [(sign, left, right), (_TURNED.get(sign, ""), right, left)]
        if any(a == gold[1] and self.same(b, gold[2]) and self.same(c, gold[3]) for a, b, c in pairs):
            return True
        if gold[1] != "=" or sign != "=" or {"rel", "seq"} & {left[0], right[0], gold[2][0], gold[3][0]}:
            return False
        return self._same_curve(("-", left, right), ("-", gold[2], gold[3]))

    def _same_curve(self, given: Tree, gold: Tree) -> bool:
        """Return whether two equations differ by a constant factor alone."""
        if _letters(given) != _letters(gold):
            return False
        if not all(self._settled(partial(self._value, tree, 0), DIGITS) for tree in (given, gold)):
            return False  # no equation holds everywhere

        def both(point: int, digits: int) -> tuple[Any, Any] | None:
            a, b = (self._value(tree, point, digits) for tree in (given, gold))
            first, second = (self._value(tree, 0, digits) for tree in (given, gold))
            return None if None in (a, b, first, second) else (a * second, first * b)

        return self._agree(both, range(1, POINTS))

    def _same_values(self, given: Tree, gold: Tree) -> bool:
        has_sign = _has_absolute(given) or _has_absolute(gold)

        def both(point: int, digits: int) -> tuple[Any, Any] | None:
            second = self._value(gold, point, digits, has_sign)
            first = None if second is None else self._value(given, point, digits, has_sign)
            return None if first is None else (first, second)

        try:
            if _is_decimal(given) or _is_decimal(gold):
                found = both(0, DIGITS[0])
                return found is not None and abs(found[0] - found[1]) <= _ROUNDED * max(map(abs, found))
            return self._agree(both, range(POINTS))
        except MissingExtra:
            if self._exact(gold) is None:
                raise
            return False  # an unusual form of a plain number, which cannot be parsed

    def _agree(self, both: Callable[[int, int], tuple[Any, Any] | None], points: range) -> bool:
        """Return whether two values are equal at all points; at the first one, with all precisions."""
        return all(self._agree_at(partial(both, point), DIGITS[-1 if point == points[0] else 1]) for point in points)

    def _agree_at(self, both: Callable[[int], tuple[Any, Any] | None], least: int) -> bool:
        """Return whether the difference of two values shrinks with the precision, relative to them or to a zero.

        A value that no precision settles equals nothing: neither it nor its difference from another one shrinks.
        """
        last: Any = None
        zeros = _Zero(), _Zero()
        for digits in DIGITS:
            found = both(digits)
            if found is None:
                return False
            gap = found[0] - found[1]
            if last and gap and abs(gap - last) <= _SETTLED * abs(gap):
                return False
            are_zero = [zero.may_be(abs(value), digits) for zero, value in zip(zeros, found, strict=True)]
            if digits >= least and (all(are_zero) or abs(gap) <= max(map(abs, found)) * _share(digits)):
                return True
            last = gap
        return False

    def _settled(self, value: Callable[[int], Any], precisions: Sequence[int]) -> Any:
        """Return a value other than zero that two precisions agree on, None if there is none."""
        last: Any = None
        for digits in precisions:
            found = value(digits)
            if found is None:
                return None
            if last is not None and found and abs(found - last) <= _SETTLED * abs(found):
                return found
            last = found
        return None

    def _exact(self, tree: Tree) -> Fraction | None:
        if id(tree) not in self._known:
            self._known[id(tree)] = tree, exact(tree, self._steps)
        return self._known[id(tree)][1]

    def _value(self, tree: Tree, point: int, digits: int, has_sign: bool = False) -> Any:
        key = id(tree), point, digits, has_sign
        if key not in self._found:
            self._found[key] = tree, value_at(tree, point, digits, self._steps, has_sign)
        return self._found[key][1]


class _Zero:
    """Sees whether the sizes of a value shrink with the precision, as what cancellation leaves of a zero does."""

    def __init__(self) -> None:
        self._first: tuple[int, Any] = 0, 1

    def may_be(self, size: Any, digits: int) -> bool:
        """Return whether a size is small enough for this many digits, next to the first one that was not zero."""
        start, first = self._first
        if size and not start:
            self._first = digits, size
        return bool(size <= first * _share(digits - start))


def _share(digits: int) -> Any:
    return library().mpf(10) ** -int(_SHRUNK * digits)


def _is_set(tree: Tree) -> bool:
    return tree[:2] in (("seq", "set"), ("sym", "emptyset"))


def _elements(tree: Tree) -> list[Tree]:
    """Return the parts of a list or set; of sets with one element in a list, which may be a union, that element."""
    if tree[1] == "set":
        return list(tree[2])
    return [part[2][0] if part[:2] == ("seq", "set") and len(part[2]) == 1 else part for part in tree[2]]


def _expanded(tree: Tree) -> Tree:
    """Return a formula with plus or minus as the list of both."""
    if tree[:2] == ("seq", ""):
        parts = [_expanded(part) for part in tree[2]]
        lists = [part[2] if part[:2] == ("seq", "") else (part,) for part in parts]
        return ("seq", "", tuple([each for part in lists for each in part]))
    if tree[0] in ("seq", "rel") or not _has_sign(tree):
        return tree
    return ("seq", "", (_with_sign(tree, "+"), _with_sign(tree, "-")))


def _has_sign(tree: Tree) -> bool:
    return tree[0] == "pm" or any(map(_has_sign, parts_of(tree)))


def _with_sign(tree: Tree, sign: str) -> Tree:
    """Return a formula with one of both signs wherever it has plus or minus."""
    if tree[0] in ("num", "sym") or not _has_sign(tree):
        return tree
    if tree[0] == "seq":
        return (*tree[:2], tuple([_with_sign(part, sign) for part in tree[2]]))
    if tree[0] == "pm" and sign == "+" and tree[1] == _ZERO:
        return _with_sign(tree[2], sign)
    parts = [_with_sign(part, sign) if isinstance(part, tuple) else part for part in tree[1:]]
    return (sign if tree[0] == "pm" else tree[0], *parts)


def is_number(tree: Tree) -> bool:
    r"""Return whether a tree is a fully evaluated number: whole, decimal, a fraction or mixed.

    >>> from turngym.envs.tools.math_python.reading import read_answer
    >>> [is_number(read_answer(text)) for text in ("-12", "0.5", r"\frac{3}{4}", "-2 1/2", "3+1", "2^3", "1/2/3")]
    [True, True, True, True, False, False, False]
    """
    tree = unsigned(tree)
    if tree[0] == "mixed":
        return is_number(tree[2])
    if tree[0] == "/":
        return all(part[0] == "num" and part[1].denominator == 1 for part in map(unsigned, tree[1:]))
    return bool(tree[0] == "num")


def _is_as_short(given: Tree, gold: Tree) -> bool:
    """Return whether a number is not a fraction where a whole number would do."""
    return bool(unsigned(gold)[0] != "num" or unsigned(given)[0] == "num")


def _is_decimal(tree: Tree) -> bool:
    tree = unsigned(tree)
    return bool(tree[0] == "num" and tree[1].denominator != 1)


def _has_absolute(tree: Tree) -> bool:
    return tree[:2] == ("call", "abs") or any(map(_has_absolute, parts_of(tree)))


def _letters(tree: Tree) -> set[str]:
    if tree[0] == "sym":
        return {tree[1]}
    return set[str]().union(*map(_letters, parts_of(tree)))
