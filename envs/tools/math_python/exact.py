"""Exact values of formulas that are rational numbers; huge numbers are not computed."""

from __future__ import annotations

import math
from fractions import Fraction

from turngym.envs.tools.math_python.limits import Steps
from turngym.envs.tools.math_python.reading import Tree

_MOST_BITS = 20_000
_MOST_FACTORIAL = 2100


def exact(tree: Tree, steps: Steps | None = None) -> Fraction | None:
    """Return the value of a tree that is a rational number; None if it is not, or is huge.

    Args:
        tree: The tree to evaluate.
        steps: Step budget; that of one whole answer by default.

    Raises:
        TooCostly: It takes more steps than are left.

    >>> from turngym.envs.tools.math_python.reading import read_answer
    >>> exact(read_answer("2^{10}/3!"))
    Fraction(512, 3)
    """
    steps = steps or Steps()
    steps.take(1)
    kind = tree[0]
    if kind == "num":
        return Fraction(tree[1])
    if kind == "!":
        return _factorial(exact(tree[1], steps), steps)
    if kind == "call" and tree[1] == "abs":
        inside = exact(tree[2], steps)
        return None if inside is None else abs(inside)
    if kind not in ("+", "-", "*", "/", "^", "mixed"):
        return None
    left = exact(tree[1], steps)
    right = None if left is None else exact(tree[2], steps)
    if left is None or right is None:
        return None
    if kind == "^":
        return _power(left, right, steps)
    steps.take(_cost(_bits(left) + _bits(right)))
    if kind == "/":
        return _small(left / right) if right else None
    return _small(left * right if kind == "*" else left - right if kind == "-" else left + right)


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _cost(bits: int) -> int:
    """Return the steps that arithmetic with fractions of so many bits takes: reducing them grows with the square."""
    return (bits // 1000) ** 2 // 8


def _small(value: Fraction) -> Fraction | None:
    return value if _bits(value) < _MOST_BITS else None


def _factorial(value: Fraction | None, steps: Steps) -> Fraction | None:
    if value is None or value.denominator != 1 or not 0 <= value <= _MOST_FACTORIAL:
        return None
    steps.take(int(value) // 32)
    return _small(Fraction(math.factorial(int(value))))


def _power(base: Fraction, exponent: Fraction, steps: Steps) -> Fraction | None:
    bits = _bits(base)
    if exponent.denominator == 1:
        if abs(exponent) * bits > _MOST_BITS or (not base and exponent < 0):
            return None
        steps.take(_cost(int(abs(exponent)) * bits))
        return base ** int(exponent)
    if base < 0 or abs(exponent.numerator) * bits > _MOST_BITS or exponent.denominator > 64:
        return None
    steps.take(4 * _cost(bits))
    roots = _root(base.numerator, exponent.denominator), _root(base.denominator, exponent.denominator)
    if None in roots or not roots[0]:
        return Fraction(0) if base == 0 and exponent > 0 else None
    return Fraction(roots[0] or 0, roots[1] or 1) ** exponent.numerator


def _root(value: int, degree: int) -> int | None:
    """Return the whole root of a whole number, None where it has none."""
    found = 1 << (value.bit_length() // degree + 1)  # above the root; Newton's steps fall from there
    while value:
        lower = ((degree - 1) * found + value // found ** (degree - 1)) // degree
        if lower >= found:
            break
        found = lower
    root = found if value else 0
    return root if root**degree == value else None
