"""Equivalence of mathematical answers.

Rational numbers are compared exactly. Everything else is compared as functions of its letters, by their values at
several points with 30 to 240 digits (mpmath): there is no simplifier that could hang, and nothing is executed. Two
formulas are equal if their difference shrinks with the precision, relative to them; no number is too small to be told
from zero. What cannot be decided so, such as the pole of a tangent or ``2^{50000} + 1``, equals only itself. Lists
and sets are compared in any order, tuples, intervals and matrices part by part; anything else as words. An answer that
takes too many steps or has numbers out of bounds is not equal.

A unit that only one of both answers states is ignored, two different units or words for what is counted are different,
and so are the words after a number that may change it (``3 less``); ``5 million`` is 5000000. Degrees are radians in
trigonometric functions and plain numbers elsewhere.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from fractions import Fraction

from turngym.envs.tools.math_python.comparing import Judge
from turngym.envs.tools.math_python.limits import Steps, TooCostly
from turngym.envs.tools.math_python.reading import CONSTANTS, Tree, Unreadable, holds, read_answer
from turngym.envs.tools.math_python.sets import set_notation
from turngym.envs.tools.math_python.spelling import readings, spelled
from turngym.envs.tools.math_python.tokens import tokens
from turngym.envs.tools.math_python.units import is_one_unit, scaled, split_unit
from turngym.envs.tools.math_python.values import has_letter, library

_LONGEST = 10_000
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")
_KNOWN_WORDS = re.compile(
    r"^(?:sqrt|cot|sec|csc|log|exp|abs|inf|infinity|end|[pbv]?matrix|arc\w+|a?(?:sin|cos|tan)h?|a(?:cot|sec|csc))$"
)
PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:[./]\d+)?")
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
    given, gold = scaled(spelled(given[:_LONGEST])), scaled(spelled(gold))
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
        return bare, bare_gold, is_one_unit(unit, wanted)
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
        if not name and wanted and wanted[0] == "roots" and value[:2] == ("seq", ""):  # the right one tells the order
            value, right = ("seq", "()", value[2]), ("seq", "()", right[2])
        if (name or wanted) and (not name or not wanted or _is_one_name(name, wanted)):
            yield value, right


def _is_one_name(first: Tree, second: Tree) -> bool:
    """Return whether two names of values are the same, where ``y`` and ``f(x)`` are."""
    if first[0] == "roots":
        return False
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
        names, values = [name for name, _ in parts], ("seq", "", tuple([value for _, value in parts]))
        is_first = not any(names[1:]) and not any(part[0] == "rel" for part in tree[2][1:])
        if names[0] and (is_first or all(name == names[0] for name in names)):
            return names[0], values
        if all(name and name[0] == "sym" for name in names) and _are_roots([str(name[1]) for name in names if name]):
            return ("roots", *names), values
    is_name = tree[:2] in (("rel", "="), ("rel", "\\in")) and tree[2][0] in ("sym", "fn")
    if is_name and tree[2][1] not in CONSTANTS and not holds(tree[3], tree[2][1].rstrip("'")):
        return tree[2], tree[3]
    if tree[:2] == ("rel", "=") and (_is_point(tree[2], tree[3]) or _is_length_or_angle(tree[2], tree[3])):
        return tree[2], tree[3]
    return None, tree


def _are_roots(names: list[str]) -> bool:
    """Return whether names differ by their index alone: ``x_1`` and ``x_2``."""
    return len(set(names)) == len(names) and len({name.partition("_")[0] for name in names}) == 1


def _is_point(left: Tree, right: Tree) -> bool:
    """Return whether letters name the coordinates of a point: ``(x, y) = (1, 2)``."""
    if left[:2] != ("seq", "()") or right[:2] != ("seq", "()") or len(left[2]) != len(right[2]):
        return False
    letters = [part[1] for part in left[2] if part[0] == "sym" and part[1] not in CONSTANTS]
    return len(set(letters)) == len(left[2]) and not any(holds(right, letter) for letter in letters)


def _is_length_or_angle(left: Tree, right: Tree) -> bool:
    r"""Return whether two points or an angle name a number, which is not 0: ``AB = 5``, ``\angle A = 30``."""
    letters = _factors(left)
    is_angle = letters[:1] == ["angle"] or letters[:2] == ["m", "angle"]
    is_length = len(letters) == 2 and all(len(letter) == 1 and letter.isupper() for letter in letters)
    return (is_angle or is_length) and right != ("num", Fraction(0)) and not has_letter(right)


def _factors(tree: Tree) -> list[str]:
    """Return the letters of a product of letters alone; else nothing."""
    if tree[0] == "sym":
        return [str(tree[1])]
    parts = [_factors(part) for part in tree[1:]] if tree[0] == "*" else [[]]
    return [letter for part in parts for letter in part] if all(parts) else []


def require_comparison(answers: Iterable[str]) -> None:
    """Raise unless all of these answers can be compared here.

    Raises:
        MissingExtra: Some are not plain numbers, and mpmath is missing.
    """
    if not all(PLAIN_NUMBER.fullmatch(answer.strip()) for answer in answers):
        library()
