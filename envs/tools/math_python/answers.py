"""Whether two mathematical answers are equivalent.

Rational numbers are compared exactly. Everything else is compared as functions of its letters, by their values at
several points with 30 digits (mpmath): there is no simplifier that could hang, and nothing is executed. Lists and sets
are compared in any order, tuples, intervals and matrices part by part; anything else as words. What takes too
many steps or holds numbers out of bounds is not equal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from turngym.envs.tools.math_python.exact import exact
from turngym.envs.tools.math_python.limits import Steps, TooCostly
from turngym.envs.tools.math_python.reading import Tree, Unreadable, parts_of, read_answer, unsigned
from turngym.envs.tools.math_python.values import library, values_of
from turngym.errors import MissingExtra

_LONGEST = 10_000
_MOST_PARTS = 64
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")
_KNOWN_WORDS = re.compile(
    r"^(?:sqrt|sin|cos|tan|cot|sec|csc|log|exp|abs|inf|end|[pbv]?matrix|arc\w+|sinh|cosh|tanh|asin|acos|atan)$"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[./]\d+)?")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|operatorname)\s*\{([^{}]*)\}")
_UNIT = re.compile(r"[a-zA-Z][a-zA-Z. ]*")
_COMMA = re.compile(r",\s+")
_DECORATION = re.compile(r"[\s\\${}().,;:!?\"'`*_]+")


def same_answer(given: str, gold: str, must_be_worked_out: bool = False) -> bool:
    r"""Return whether an answer is right.

    Args:
        given: The answer.
        gold: The right one.
        must_be_worked_out: Whether a number must be written as one where the right answer is: whole numbers as such,
            others as a decimal, a fraction or a mixed number. Else a formula with that value will do.

    >>> same_answer("0.5", r"\frac{1}{2}"), same_answer("(3, 2)", "(2,3)"), same_answer(r"x^2+2x+1", "(x+1)^2")
    (True, False, True)
    >>> same_answer("3!", "6"), same_answer("3!", "6", must_be_worked_out=True)
    (True, False)

    Raises:
        MissingExtra: Neither is rational, and the package mpmath is missing.
    """
    given, gold = _outer(given[:_LONGEST]), _outer(gold)
    if not given or _surface(given) == _surface(gold):
        return bool(given)
    if _is_text(gold):
        return False
    wrapped = _TEXT.fullmatch(given)
    given = _outer(wrapped[1]) if wrapped else given
    if not re.search("[a-zA-Z]", _TEXT.sub("", gold)):
        given = _without_unit(given)
    if _is_text(given):
        return False
    judge = _Judge(must_be_worked_out)
    try:
        first, second = read_answer(given), read_answer(_TEXT.sub("", gold))
        if first[0] == second[0] == "rel" and judge.same(first, second):
            return True
        return judge.same(_stripped(first), _stripped(second))
    except (Unreadable, TooCostly):
        return False


def _outer(text: str) -> str:
    """Return a text without blanks, dollar signs and full stops around it."""
    return text.strip().rstrip(".").strip("$").strip()


def _surface(text: str) -> str:
    r"""Return a text as it is compared with another one by its looks: words without decoration, numbers with all of it.

    >>> _surface(r"\text{Yes!}"), _surface("1.5"), _surface("3!")
    ('yes', '1.5', '3!')
    """
    if not re.search("[a-zA-Z]", text):
        return _COMMA.sub(",", text)
    return _DECORATION.sub(" ", _TEXT.sub(r" \1 ", text)).strip().casefold()


def _without_unit(text: str) -> str:
    """Return a number without the unit after it; other texts as they are.

    >>> _without_unit("1,200 dollars"), _without_unit("18%"), _without_unit("2 1/2")
    ('1,200', '18', '2 1/2')
    """
    number = text.removeprefix("\\").removeprefix("$").lstrip()
    unit = number.lstrip("+-0123456789.,/ ")
    bare = number[: len(number) - len(unit)].rstrip(" .,/")
    is_number = bool(bare) and bare[-1].isdecimal() and bare[1:].find("+") == bare[1:].find("-") == -1
    return bare if is_number and (not unit or unit in ("%", "\\%") or _UNIT.fullmatch(unit)) else text


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


class _Judge:
    """Compares the trees of one answer, at a cost that is limited.

    Args:
        must_be_worked_out: Whether a number must be written as one where the right answer is.
    """

    def __init__(self, must_be_worked_out: bool) -> None:
        self._must_be_worked_out, self._steps = must_be_worked_out, Steps()
        # by the id of a tree, which stands beside its result so that no other gets its id
        self._lists: dict[int, tuple[Tree, Tree]] = {}
        self._known: dict[int, tuple[Tree, Fraction | None]] = {}
        self._found: dict[int, tuple[Tree, list[Any] | None]] = {}

    def same(self, given: Tree, gold: Tree) -> bool:
        """Return whether two trees mean the same.

        Raises:
            MissingExtra: Neither is rational, and the package mpmath is missing.
            TooCostly: It takes too many steps.
        """
        self._steps.take(1)
        given, gold = self._expanded(given), self._expanded(gold)
        if gold[0] == "seq" or given[0] == "seq":
            return self._same_sequence(given, gold)
        if gold[0] == "rel" or given[0] == "rel":
            return self._same_relation(given, gold)
        if self._must_be_worked_out and is_number(gold) and not (is_number(given) and is_as_short(given, gold)):
            return False
        known = self._exact(gold), self._exact(given)
        if known[0] is not None and known[1] is not None:
            return known[0] == known[1]
        return self._same_values(given, gold)

    def _expanded(self, tree: Tree) -> Tree:
        if id(tree) not in self._lists:
            self._lists[id(tree)] = tree, _expanded(tree)
        return self._lists[id(tree)][1]

    def _same_sequence(self, given: Tree, gold: Tree) -> bool:
        if given[0] != gold[0]:
            sequence = gold if gold[0] == "seq" else given
            if sequence[1] not in ("", "set") or len(sequence[2]) != 1:
                return False
            return self.same(given, gold[2][0]) if sequence is gold else self.same(given[2][0], gold)
        loose = {"", "set"}
        if len(given[2]) != len(gold[2]) or len(gold[2]) > _MOST_PARTS:
            return False
        if given[1] in loose and gold[1] in loose:
            return self._same_in_any_order(list(given[2]), gold[2])
        if given[1] != gold[1] and {given[1], gold[1]} != {"", "()"}:
            return False
        return all(itertools.starmap(self.same, zip(given[2], gold[2], strict=True)))

    def _same_in_any_order(self, given: list[Tree], gold: Sequence[Tree]) -> bool:
        for wanted in gold:
            found = next((place for place, each in enumerate(given) if self.same(each, wanted)), None)
            if found is None:
                return False
            del given[found]
        return True

    def _same_relation(self, given: Tree, gold: Tree) -> bool:
        if given[0] != "rel" or gold[0] != "rel":
            return False
        turned = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "=": "=", "\\ne": "\\ne"}
        sign, left, right = given[1:]
        pairs = [(sign, left, right), (turned.get(sign, ""), right, left)]
        if any(a == gold[1] and self.same(b, gold[2]) and self.same(c, gold[3]) for a, b, c in pairs):
            return True
        if gold[1] != "=" or sign != "=" or "rel" in (left[0], right[0], gold[2][0], gold[3][0]):
            return False
        return self._same_curve(("-", left, right), ("-", gold[2], gold[3]))

    def _same_curve(self, given: Tree, gold: Tree) -> bool:
        """Return whether two equations differ by a constant factor alone."""
        first, second = self._values(given), self._values(gold)
        if first is None or second is None or _letters(given) != _letters(gold):
            return False
        ratios = [a / b for a, b in zip(first, second, strict=True) if b]
        return len(ratios) == len(second) and bool(ratios[0]) and all(_close(ratio, ratios[0]) for ratio in ratios)

    def _same_values(self, given: Tree, gold: Tree) -> bool:
        try:
            first, second = self._values(given), self._values(gold)
        except MissingExtra:
            if self._exact(gold) is None:
                raise
            return False  # an unusual form of a plain number, which cannot be parsed
        if first is None or second is None:
            return False
        return all(itertools.starmap(_close, zip(first, second, strict=True)))

    def _exact(self, tree: Tree) -> Fraction | None:
        if id(tree) not in self._known:
            self._known[id(tree)] = tree, exact(tree, self._steps)
        return self._known[id(tree)][1]

    def _values(self, tree: Tree) -> list[Any] | None:
        if id(tree) not in self._found:
            self._found[id(tree)] = tree, values_of(tree, self._steps)
        return self._found[id(tree)][1]


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
    parts = [_with_sign(part, sign) if isinstance(part, tuple) else part for part in tree[1:]]
    return (sign if tree[0] == "pm" else tree[0], *parts)


def is_number(tree: Tree) -> bool:
    r"""Return whether a tree is a fully evaluated number: whole, decimal, a fraction or mixed.

    >>> [is_number(read_answer(text)) for text in ("-12", "0.5", r"\frac{3}{4}", "-2 1/2", "3+1", "2^3", "1/2/3")]
    [True, True, True, True, False, False, False]
    """
    tree = unsigned(tree)
    if tree[0] == "mixed":
        return is_number(tree[2])
    if tree[0] == "/":
        return all(part[0] == "num" and part[1].denominator == 1 for part in map(unsigned, tree[1:]))
    return bool(tree[0] == "num")


def is_as_short(given: Tree, gold: Tree) -> bool:
    """Return whether a number is not a fraction where a whole number would do."""
    return bool(unsigned(gold)[0] != "num" or unsigned(given)[0] == "num")


def _close(first: Any, second: Any) -> bool:
    return bool(abs(first - second) <= 1e-9 * max(1e-9, abs(first), abs(second)))


def _letters(tree: Tree) -> set[str]:
    if tree[0] == "sym":
        return {tree[1]}
    return set[str]().union(*map(_letters, parts_of(tree)))


def require_comparison(answers: Iterable[str]) -> None:
    """Raise unless all of these answers can be compared here.

    Raises:
        MissingExtra: Some are no plain numbers, and mpmath is missing.
    """
    if not all(_PLAIN_NUMBER.fullmatch(answer.strip()) for answer in answers):
        library()
