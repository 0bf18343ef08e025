"""Reading mathematical answers, LaTeX or plain, as trees; a parser for a small grammar that runs nothing.

    expression = term {(+ | - | pm) term}          term   = factor {[* | / | cdot | ...] factor}
    factor     = {+ | -} power                     power  = atom {! | ^ power | _ atom}
    atom       = number | letter | name atom | frac{..}{..} | sqrt[..]{..} | (..) | [..] | {..} | |..| | matrix

Trees are tuples: a kind, then its parts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, TypeAlias

from turngym.envs.tools.math_python.tokens import FUNCTIONS, INVERSE, tokens

Tree: TypeAlias = tuple[Any, ...]
"""``("num", Fraction)``, ``("sym", name)``, ``("+", a, b)``, ``("call", name, tree)``, ``("fn", letter, tree)``,
``("seq", marks, trees)`` ..."""

_ZERO: Tree = ("num", Fraction(0))
_MINUS_ONE: Tree = ("-", _ZERO, ("num", Fraction(1)))
_DEGREE: Tree = ("/", ("sym", "pi"), ("num", Fraction(180)))
LONGEST = 2000
_DEEPEST = 60
"""Levels of brackets, exponents and functions within one another."""
_MOST_NODES, _MOST_LEVELS = 1000, 150
_RELATIONS = {"=", "<", ">", *(f"\\{name}" for name in ("le", "ge", "in", "to", "ne"))}
_NO_ATOMS = {f"\\{name}" for name in ("}", "\\", "pm", "cup", "or", "over", "choose", "rfloor", "rceil", "degree")}
CONSTANTS = {"pi", "e", "i", "infty"}
_FUNCTION_LETTERS = set("fgFG")
_MATRIX_MARK = "#"
"""Starts the mark of a matrix, which a number follows: no text gives such a mark."""
_MATRIX = re.compile(r"\\begin\{[pbv]?matrix\}(.*?)\\end\{[pbv]?matrix\}", re.DOTALL)
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}")


class Unreadable(ValueError):
    """A text outside of the grammar."""


def read_answer(text: str) -> Tree:
    r"""Return the tree of an answer.

    >>> read_answer(r"\frac{1}{2}")
    ('/', ('num', Fraction(1, 1)), ('num', Fraction(2, 1)))
    >>> read_answer("2, 3")[0]
    'seq'

    Raises:
        Unreadable: It is outside of the grammar.
    """
    if len(text) > LONGEST:
        raise Unreadable("too long")
    tree = _Reader(_TEXT.sub(lambda found: f" {found[1]} ", text)).sequence({""})
    _require_small(tree)
    return _without_degrees(tree, is_angle=False)


def _require_small(tree: Tree) -> None:
    """Raise where a tree has too many nodes or levels: what walks over it calls itself."""
    level, count = [tree], 0
    for _ in range(_MOST_LEVELS):
        count += len(level)
        level = [part for each in level for part in parts_of(each)]
        if not level or count > _MOST_NODES:
            break
    if level or count > _MOST_NODES:
        raise Unreadable("too large")


def _without_degrees(tree: Tree, is_angle: bool) -> Tree:
    """Return a tree in which angles of trigonometric functions are radians, and degrees elsewhere plain numbers."""
    if tree[0] == "degree":
        inside = _without_degrees(tree[1], is_angle)
        return ("*", inside, _DEGREE) if is_angle else inside
    if tree[0] == "seq":
        return (*tree[:2], tuple([_without_degrees(part, is_angle) for part in tree[2]]))
    is_angle = is_angle or (tree[0] == "call" and tree[1] in INVERSE)
    return tuple([_without_degrees(part, is_angle) if isinstance(part, tuple) else part for part in tree])


def parts_of(tree: Tree) -> tuple[Tree, ...]:
    """Return the trees right below the top of a tree.

    >>> parts_of(read_answer("2x"))
    (('num', Fraction(2, 1)), ('sym', 'x'))
    """
    if tree[0] == "seq":
        inside: tuple[Tree, ...] = tree[2]
        return inside
    return tuple([part for part in tree[1:] if isinstance(part, tuple)])


def holds(tree: Tree, letter: str) -> bool:
    """Return whether a letter is part of a tree.

    >>> holds(read_answer("2x + y"), "x"), holds(read_answer("2y"), "x")
    (True, False)
    """
    return (tree[0] in ("sym", "fn") and tree[1] == letter) or any(holds(part, letter) for part in parts_of(tree))


def _with_index(base: Tree, index: Tree) -> Tree:
    """Return a letter with an index, or what else has one, such as a number with its base."""
    if base[0] == "sym" and index[0] in ("num", "sym"):
        return ("sym", f"{base[1]}_{index[1]}")
    return ("seq", "_", (base, index))


def unsigned(tree: Tree) -> Tree:
    """Return a tree without the minus before it."""
    inside: Tree = tree[2] if tree[:2] == ("-", _ZERO) else tree
    return inside


def _mixed(left: Tree, fraction: Tree) -> Tree:
    """Return a whole number, perhaps below zero, and a fraction next to it."""
    found = ("mixed", unsigned(left), fraction)
    return found if left[0] == "num" else ("-", _ZERO, found)


def _binomial(top: Tree, bottom: Tree) -> Tree:
    return ("/", ("!", top), ("*", ("!", bottom), ("!", ("-", top, bottom))))


class _Reader:
    """Walks over the marks from left to right."""

    def __init__(self, text: str) -> None:
        outside, *rest = _MATRIX.split(text)
        self._matrices = rest[::2]
        self._marks = tokens(outside)
        for number, after in enumerate(rest[1::2]):
            self._marks += [f"{_MATRIX_MARK}{number}", *tokens(after)]
        self._marks.append("")
        self._place = self._depth = self._open_bars = 0

    @property
    def _now(self) -> str:
        return self._marks[self._place]

    def _take(self, wanted: str = "") -> str:
        mark = self._now
        if (wanted and mark != wanted) or not mark:
            raise Unreadable(f"{mark!r} where {wanted or 'more'!r} was expected")
        self._place += 1
        return mark

    def sequence(self, ends: set[str]) -> Tree:
        """Return what stands between two brackets: one tree, or several after one another."""
        items = [self._relation()]
        while self._now in (",", ";", "\\cup", "\\or"):
            self._take()
            if self._now == "\\or":  # "1, 2, or 3"
                self._take()
            items.append(self._relation())
        if self._now not in ends:
            raise Unreadable(f"{self._now!r} is out of place")
        return items[0] if len(items) == 1 else ("seq", "", tuple(items))

    def _relation(self) -> Tree:
        left = self._sum()
        while self._now in _RELATIONS:
            sign = self._take()
            left = ("rel", sign, left, self._sum())
        return left

    def _sum(self) -> Tree:
        self._enter()
        if self._now == "\\pm":
            self._take()
            left: Tree = ("pm", _ZERO, self._product())
        else:
            left = self._product()
        while self._now in ("+", "-", "\\pm"):
            sign = self._take()
            left = ("pm" if sign == "\\pm" else sign, left, self._product())
        self._depth -= 1
        return left

    def _product(self) -> Tree:
        left = self._factor()
        while True:
            if self._now in ("*", "/"):
                left = (self._take(), left, self._factor())
            elif self._begins_atom():
                left = self._side_by_side(left)
            else:
                return left

    def _begins_atom(self) -> bool:
        mark = self._now
        if not mark or mark in "+-*/^_!',;=<>)]}&:" or mark in _RELATIONS or (mark == "|" and self._open_bars):
            return False
        return mark not in _NO_ATOMS

    def _side_by_side(self, left: Tree) -> Tree:
        """Return a product without a sign, or a mixed number such as ``2 1/2``."""
        is_fraction, is_number = self._now == "\\frac", self._now[0].isdecimal()
        right = self._power()
        if right[0] == "degree" and is_fraction:
            return ("degree", self._joined(left, right[1], is_number, is_fraction))
        return self._joined(left, right, is_number, is_fraction)

    def _joined(self, left: Tree, right: Tree, is_number: bool, is_fraction: bool) -> Tree:
        whole = unsigned(left)
        if whole[0] == "num" and whole[1].denominator == 1:
            if is_number and right[0] == "num" and self._now == "/":
                self._take()
                return _mixed(left, ("/", right, self._power()))
            if is_fraction and right[0] == "/" and right[1][0] == right[2][0] == "num":
                return _mixed(left, right)
        if is_number and whole[0] == right[0] == "num":
            raise Unreadable("two numbers side by side")
        return ("*", left, right)

    def _factor(self) -> Tree:
        sign = 1
        while self._now in ("+", "-"):
            sign *= -1 if self._take() == "-" else 1
        found = self._power()
        return found if sign == 1 else ("-", _ZERO, found)

    def _power(self) -> Tree:
        base = self._atom()
        while self._now in ("^", "!", "_", "'", "\\degree") or self._is_applied(base):
            mark = self._take()
            if mark == "(":
                base = ("fn", base[1], self._bracketed(mark))
            elif mark == "'" and base[0] == "sym":
                base = ("sym", base[1] + mark)
            elif mark == "'":
                raise Unreadable("a prime after what is no letter")
            elif mark == "!":
                base = ("!", base)
            elif mark == "\\degree":
                base = ("degree", base)
            elif mark == "_":
                base = _with_index(base, self._atom())
            else:
                base = ("^", base, self._exponent())
        return base

    def _is_applied(self, base: Tree) -> bool:
        """Return whether a letter before a bracket is a function: by its name, or of one whole number or letter."""
        if self._now != "(" or base[0] != "sym" or base[1] in CONSTANTS:
            return False
        inside = self._marks[self._place + 1 : self._place + 4]
        inside = inside[1:] if inside[0] in ("-", "+") else inside[:2]
        is_short = inside[-1] == ")" and (inside[0].isdecimal() or inside[0].lstrip("\\").isalpha())
        return is_short or base[1] in _FUNCTION_LETTERS or base[1].endswith("'")

    def _exponent(self) -> Tree:
        self._enter()
        if self._now in ("+", "-"):
            found = self._factor()
        else:
            found = self._atom()
            found = ("^", found, self._exponent()) if self._now == "^" and self._take() else found
        self._depth -= 1
        return found

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("too deep")

    def _atom(self) -> Tree:
        self._enter()
        mark = self._take()
        found = self._number_or_name(mark) or self._bracketed(mark)
        self._depth -= 1
        return found

    def _number_or_name(self, mark: str) -> Tree | None:
        if mark[0].isdecimal() or (mark[0] == "." and len(mark) > 1):
            return ("num", Fraction(mark))
        if mark[0] == _MATRIX_MARK and len(mark) > 1:
            return self._matrix(int(mark[1:]))
        if mark.isalpha():
            return ("sym", mark)
        name = mark[1:]
        if mark[0] != "\\" or not name.isalpha():
            return None
        if name == "frac":
            return ("/", self._part(), self._part())
        if name == "binom":
            return _binomial(self._part(), self._part())
        if name in ("lfloor", "lceil"):
            found = self._sum()
            self._take(f"\\r{name[1:]}")
            return ("call", name[1:], found)
        if name == "sqrt":
            return self._root()
        if name in FUNCTIONS:
            return self._function(name)
        if name in ("infty", "inf", "infinity", "oo"):
            return ("sym", "infty")
        return ("sym", name)

    def _matrix(self, number: int) -> Tree:
        rows = [row.split("&") for row in self._matrices[number].split("\\\\") if row.strip()]
        return ("seq", "m", tuple([("seq", "r", tuple(map(read_answer, row))) for row in rows]))

    def _part(self) -> Tree:
        """Return one argument of a fraction: in braces, or one mark of a digit."""
        mark = self._now
        if mark.isdecimal() and len(mark) > 1:  # \frac12
            self._marks[self._place] = mark[1:]
            return ("num", Fraction(mark[0]))
        return self._atom()

    def _root(self) -> Tree:
        degree: Tree = ("num", Fraction(2))
        if self._now == "[":
            self._take()
            degree = self._sum()
            self._take("]")
        return ("^", self._atom(), ("/", ("num", Fraction(1)), degree))

    def _function(self, name: str) -> Tree:
        power: Tree | None = None
        base: Tree | None = None
        while self._now in ("^", "_"):
            if self._take() == "^":
                power = self._atom()
            else:
                base = self._atom()
        inside = self._power() if self._now not in ("+", "-") else self._factor()
        while name != "abs" and self._now and self._now.isalpha() and inside[0] in ("num", "sym", "*"):  # sin 2x
            inside = ("*", inside, self._power())
        if power == _MINUS_ONE and name in INVERSE:
            name, power = INVERSE[name], None
        found: Tree = ("call", name, inside)
        if base is not None:
            found = ("/", found, ("call", "ln", base)) if name == "log" else ("seq", "_", (found, base))
        return found if power is None else ("^", found, power)

    def _bracketed(self, mark: str) -> Tree:
        if mark == "{":
            found = self.sequence({"}", "\\over", "\\choose"})
            mark = self._take()
            if mark != "}":
                below = self.sequence({"}"})
                self._take("}")
                found = ("/", found, below) if mark == "\\over" else _binomial(found, below)
            return found
        if mark == "|":
            self._open_bars += 1
            found = self._sum()
            self._open_bars -= 1
            self._take("|")
            return ("call", "abs", found)
        if mark == "\\{":
            if self._now == "\\}":
                self._take()
                return ("sym", "emptyset")
            found = self.sequence({"\\}"})
            self._take("\\}")
            return ("seq", "set", found[2] if found[:2] == ("seq", "") else (found,))
        if mark in ("(", "["):
            found = self.sequence({")", "]"})
            marks = mark + self._take()
            if found[:2] == ("seq", ""):
                return ("seq", marks, found[2])
            return found if marks in ("()", "[]") else ("seq", marks, (found,))
        raise Unreadable(f"{mark!r} is out of place")
