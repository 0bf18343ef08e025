"""Values of formulas at fixed points, with a given number of digits and bounded magnitudes.

Magnitudes are checked before a function is evaluated: the sine of a number with a million digits would take minutes.
Each node costs steps, so that the budget of an answer does not depend on the machine.
"""

from __future__ import annotations

import threading
import zlib
from typing import Any

from turngym.envs.tools.math_python.limits import Steps
from turngym.envs.tools.math_python.reading import CONSTANTS, Tree, parts_of
from turngym.envs.tools.math_python.tokens import INVERSE
from turngym.errors import missing_extra

POINTS = 4
DIGITS = (30, 60, 120, 240)
"""Precisions of increasing cost: what cancellation hides at one shows at the next."""
_MOST_BITS = 1 << 17
"""Size of the exponent of any value, in either direction."""
_MOST_ARGUMENT_BITS = 1000
"""The same of what a function such as the sine is applied to."""
_MOST_APART_BITS = 365
"""Size of a number relative to one that it is added to: 110 digits, of which nothing is lost with 240."""
_MOST_TINY_BITS, _MOST_HYPERBOLIC = 200, 150
"""Bounds of arguments: below, a sine is its argument; above, hyperbolic functions are powers of e."""
_MOST_FACTORIAL, _MOST_EXP, _MOST_POWER = 10**6, 10**5, 10**7
_COST = {"num": 1, "sym": 4, "call": 6, "^": 8, "!": 20}
_OWN_NAMES = {**{f"arc{name}": inverse for name, inverse in INVERSE.items()}, "log": "ln"}


class NoValue(ValueError):
    """A formula without a computable value."""


_own = threading.local()


def library() -> Any:
    """Return mpmath with a precision of this thread's own: that of the package is one for all threads.

    Raises:
        MissingExtra: The package mpmath is missing.
    """
    try:
        import mpmath
    except ModuleNotFoundError:
        raise missing_extra("comparing answers that are not rational numbers", "mpmath", "math") from None
    if not hasattr(_own, "mp"):
        _own.mp = mpmath.MPContext()
    return _own.mp


def value_at(tree: Tree, point: int, digits: int, steps: Steps, has_sign: bool = False) -> Any:
    """Return the value of a formula at a fixed point, where each letter has its own value; None where it is none.

    Args:
        tree: The tree to evaluate.
        point: Number of the point.
        digits: Precision.
        steps: Step budget.
        has_sign: Whether letters may be negative.

    Raises:
        MissingExtra: The package mpmath is missing.
        TooCostly: It takes more steps than are left.
    """
    mp = library()
    mp.dps = digits
    try:
        return _Point(point, mp, steps, digits, has_sign).value(tree)
    except (NoValue, ZeroDivisionError):
        return None


class _Point:
    """Evaluates formulas at one point."""

    def __init__(self, place: int, mp: Any, steps: Steps, digits: int, has_sign: bool) -> None:
        self._place, self._mp, self._steps, self._has_sign = place, mp, steps, has_sign
        self._cost = 1 + digits // 80
        self._is_first = digits == DIGITS[0]  # later, what cancellation leaves of a zero looks too small itself

    def value(self, tree: Tree) -> Any:
        """Return the value of a formula.

        Raises:
            NoValue: It has none, or one out of bounds.
            TooCostly: It takes more steps than are left.
            ZeroDivisionError: It divides by zero.
        """
        kind = tree[0]
        self._steps.take(_COST.get(kind, 1) * self._cost)
        if kind == "num":
            found = self._mp.mpf(tree[1].numerator) / tree[1].denominator
        elif kind == "sym":
            found = self._letter(tree[1])
        elif kind == "call":
            found = self._call(tree[1], tree[2])
        elif kind == "fn":
            found = self._function(tree[1], self.value(tree[2]))
        elif kind == "!":
            found = self._factorial(self.value(tree[1]))
        elif kind in ("+", "-", "*", "/", "^", "mixed"):
            found = self._combined(kind, self.value(tree[1]), self.value(tree[2]))
        else:
            raise NoValue(f"a {kind!r} is no number")
        return self._bounded(found, _MOST_BITS)

    def _bounded(self, value: Any, most: int) -> Any:
        if not self._mp.isfinite(value):
            raise NoValue("infinite")
        if value and abs(self._mp.mag(value)) > most:
            raise NoValue("a giant")
        return value

    def _combined(self, kind: str, left: Any, right: Any) -> Any:
        if kind == "^":
            return self._power(left, right)
        if kind == "/":
            return left / right
        if kind == "*":
            return left * right
        self._require_near(left, right)
        return left - right if kind == "-" else left + right

    def _require_near(self, left: Any, right: Any) -> None:
        """Raise where one of two numbers is too small to be seen in their sum with any precision."""
        is_sum = self._is_first and left and right
        if is_sum and abs(self._mp.mag(left) - self._mp.mag(right)) > _MOST_APART_BITS:
            raise NoValue("a sum that loses one of its parts")

    def _require_seen(self, argument: Any, is_hyperbolic: bool) -> None:
        """Raise where the value of a function cannot be told from its limit."""
        if not self._is_first or not argument:
            return
        size = self._mp.mag(argument)
        exponent = self._mp.re(argument) if is_hyperbolic else self._mp.im(argument)
        if size < -_MOST_TINY_BITS or size > _MOST_APART_BITS * 3 or abs(exponent) > _MOST_HYPERBOLIC:
            raise NoValue("a function at its limit")

    def _power(self, base: Any, exponent: Any) -> Any:
        if exponent and abs(exponent) * (1 + abs(self._mp.ln(abs(base) + 1))) > _MOST_POWER:
            raise NoValue("a giant")
        self._require_near(self._mp.one, exponent * self._mp.ln(base) if base else exponent)
        if base or not exponent:
            return self._mp.power(base, exponent)
        if self._mp.re(exponent) <= 0:
            raise NoValue("zero has no such power")
        return base

    def _factorial(self, value: Any) -> Any:
        if not abs(value) < _MOST_FACTORIAL:
            raise NoValue("a giant")
        self._require_near(value, self._mp.one)
        return self._applied(self._mp.gamma, value + 1)

    def _call(self, name: str, inside: Tree) -> Any:
        value = self.value(inside)
        if name == "abs":
            return abs(value)
        if name in ("floor", "ceil") and has_letter(inside):
            return self._function(name, value)
        if name in ("exp", "sinh", "cosh") and abs(value) > _MOST_EXP:
            raise NoValue("a giant")
        is_logarithm = name in ("ln", "log")
        if not is_logarithm and name not in ("floor", "ceil", "exp"):
            self._require_seen(value, name in ("sinh", "cosh", "tanh"))
        argument = self._bounded(value, _MOST_BITS if is_logarithm else _MOST_ARGUMENT_BITS)
        return self._applied(getattr(self._mp, _OWN_NAMES.get(name, name)), argument)

    def _function(self, name: str, value: Any) -> Any:
        """Return the value of a function that only its name is known of: equal for equal arguments."""
        number = _number(name)
        self._require_near(self._mp.one, value)
        return self._mp.sin(self._bounded(value, _MOST_ARGUMENT_BITS) * (1 + number % 97) + self._mp.sqrt(number + 2))

    def _applied(self, function: Any, argument: Any) -> Any:
        try:
            return function(argument)
        except ValueError as error:  # so mpmath reports a pole
            raise NoValue(str(error)) from error

    def _letter(self, name: str) -> Any:
        mp, point = self._mp, self._place
        if name == "pi":
            return +mp.pi
        if name == "e":
            return +mp.e
        if name == "i":
            return mp.mpc(0, 1)
        if name == "infty":
            raise NoValue("no number")
        number = _number(name)
        size = mp.frac(mp.sqrt(number * 4 + point * 2 + 3)) + mp.mpf(point + 1) / 3 + mp.mpf(1) / 10
        is_negative = self._has_sign and point and (point == POINTS - 1 or number >> point & 1)
        return -size if is_negative else size


def _number(name: str) -> int:
    return zlib.crc32(name.encode("utf8", "surrogatepass"))


def has_letter(tree: Tree) -> bool:
    """Return whether a formula is not a constant.

    >>> has_letter(("sym", "x")), has_letter(("sym", "pi"))
    (True, False)
    """
    return (tree[0] == "sym" and tree[1] not in CONSTANTS) or any(map(has_letter, parts_of(tree)))
