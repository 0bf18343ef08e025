"""Whether two mathematical answers are equivalent.

Rational numbers are compared exactly. Everything else is compared as functions of its letters, by their values at
several points with 30 to 240 digits (mpmath): there is no simplifier that could hang, and nothing is executed. Two
formulas are equal if their difference shrinks with the precision, relative to them; no number is too small to be told
from zero. What cannot be decided so, such as the pole of a tangent or ``2^{50000} + 1``, equals only itself. Lists
and sets are compared in any order, tuples, intervals and matrices part by part; anything else as words. An answer that
takes too many steps or has numbers out of bounds is not equal.

A unit that only one of both answers states is ignored, two different units are different, and so are the words after a
number that may change it (``5 million``, ``3 less``). Degrees are radians in trigonometric functions and plain numbers
elsewhere.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from turngym.envs.tools.math_python.comparing import Judge
from turngym.envs.tools.math_python.limits import Steps, TooCostly
from turngym.envs.tools.math_python.reading import CONSTANTS, Tree, Unreadable, holds, read_answer
from turngym.envs.tools.math_python.sets import set_notation
from turngym.envs.tools.math_python.spelling import readings, spelled
from turngym.envs.tools.math_python.tokens import tokens
from turngym.envs.tools.math_python.units import split_unit
from turngym.envs.tools.math_python.values import library

_LONGEST = 10_000
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")
_KNOWN_WORDS = re.compile(
    r"^(?:sqrt|cot|sec|csc|log|exp|abs|inf|infinity|end|[pbv]?matrix|arc\w+|a?(?:sin|cos|tan)h?|a(?:cot|sec|csc))$"
)
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[./]\d+)?")
_PERCENT = re.compile(r"\\text\s*\{\s*percent\s*\}|\bpercent\b|%")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|operatorname)\s*\{([^{}]*)\}")
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
    is_word = bool(_TEXT.search(gold))
    given, gold = spelled(given[:_LONGEST]), spelled(gold)
    if _PERCENT.search(gold):
        given, gold = (_PERCENT.sub("%", text) for text in (given, gold))
    if not given or given == gold:
        return bool(given)
    given, gold, has_one_unit = _without_units(given, gold)
    if not has_one_unit:
        return False
    given, gold = set_notation(given), set_notation(gold)
    is_text = _is_text(given) or _is_text(gold)
    if is_word or is_text:
        if _words(given) == _words(gold):
            return True
        if is_text:
            return False
    return _same_formula(readings(given), readings(gold), Judge(must_be_worked_out, Steps()))


def _without_units(given: str, gold: str) -> tuple[str, str, bool]:
    """Return both answers without units, and whether these are the same; one that is stated once is."""
    (bare, unit), (bare_gold, wanted) = split_unit(given), split_unit(gold)
    if unit and wanted:
        return bare, bare_gold, unit == wanted
    gold, _ = split_unit(gold, least=2)
    given, _ = split_unit(given, least=3 if _LETTER.search(gold) else 1)
    return given, gold, True


def _same_formula(given: list[str], gold: list[str], judge: Judge) -> bool:
    """Return whether an answer read in one way equals the right one read in one way."""
    if {tuple(tokens(text)) for text in given} & {tuple(tokens(text)) for text in gold}:
        return True
    try:
        return any(itertools.starmap(judge.same, _pairs(_trees(given), _trees(gold))))
    except TooCostly:
        return False


def _pairs(given: list[Tree], gold: list[Tree]) -> Iterable[tuple[Tree, Tree]]:
    """Return what to compare: the trees, and their values where one or both are named, as in ``x = 5``."""
    for first, second in itertools.product(given, gold):
        yield first, second
        (name, value), (wanted, right) = _named(first), _named(second)
        if (name or wanted) and (not name or not wanted or _is_one_name(name, wanted)):
            yield value, right


def _is_one_name(first: Tree, second: Tree) -> bool:
    """Return whether two names of values are the same, where ``y`` and ``f(x)`` are."""
    kinds = {("fn", name[1]) if name[0] == "fn" and name[2][0] == "sym" else name for name in (first, second)}
    return first == second or kinds == {("sym", "y"), ("fn", "f")}


def _trees(texts: list[str]) -> list[Tree]:
    found = []
    for text in texts:
        try:
            found.append(read_answer(text))
        except Unreadable:
            continue
    return found


def _words(text: str) -> str:
    r"""Return a text as it is compared with another one by its words: without decoration.

    >>> _words(r"\text{Yes!}")
    'yes'
    """
    return _DECORATION.sub(" ", _TEXT.sub(r" \1 ", text)).strip().casefold()


def _is_text(text: str) -> bool:
    """Return whether a text holds words, which must not be read as products of letters."""
    if text.casefold() == "no":
        return True
    return not all(map(_KNOWN_WORDS.match, _WORD.findall(text)))


def _named(tree: Tree) -> tuple[Tree | None, Tree]:
    """Return the left side where it only names the right one, and that: ``x = 5``, ``f(x) = 2x``; else the tree."""
    if tree[:2] == ("seq", ""):
        parts = [_named(part) for part in tree[2]]
        is_set = tree[2][0][:2] == ("rel", "\\in") and not any(name for name, _ in parts[1:])
        if parts[0][0] and (is_set or all(name == parts[0][0] for name, _ in parts)):
            return parts[0][0], ("seq", "", tuple([value for _, value in parts]))
    is_name = tree[:2] in (("rel", "="), ("rel", "\\in")) and tree[2][0] in ("sym", "fn")
    if is_name and tree[2][1] not in CONSTANTS and not holds(tree[3], tree[2][1].rstrip("'")):
        return tree[2], tree[3]
    return None, tree


def require_comparison(answers: Iterable[str]) -> None:
    """Raise unless all of these answers can be compared here.

    Raises:
        MissingExtra: Some are no plain numbers, and mpmath is missing.
    """
    if not all(_PLAIN_NUMBER.fullmatch(answer.strip()) for answer in answers):
        library()
