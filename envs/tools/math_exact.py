"""Values of formulas that are rational numbers, exactly; giants are not worked out."""

from __future__ import annotations

from fractions import Fraction

from turngym.envs.tools.math_reading import Tree

_MOST_BITS = 20_000


def exact(tree: Tree) -> Fraction | None:
    """Return the value of a tree that is a rational number, None where it is none or a giant.

    >>> from turngym.envs.tools.math_reading import read_answer
    >>> exact(read_answer("2^{10}/3!"))
    Fraction(512, 3)
    """
    kind = tree[0]
    if kind == "num":
        return Fraction(tree[1])
    if kind == "!":
        return _factorial(exact(tree[1]))
    if kind == "call" and tree[1] == "abs":
        inside = exact(tree[2])
        return None if inside is None else abs(inside)
    if kind not in ("+", "-", "*", "/", "^"):
        return None
    left, right = exact(tree[1]), exact(tree[2])
    if left is None or right is None:
        return None
    if kind == "^":
        return _power(left, right)
    if kind == "/":
        return left / right if right else None
    return left + right if kind == "+" else left - right if kind == "-" else _small(left * right)


def _small(value: Fraction) -> Fraction | None:
    return value if value.numerator.bit_length() + value.denominator.bit_length() < _MOST_BITS else None


def _factorial(value: Fraction | None) -> Fraction | None:
    if value is None or value.denominator != 1 or not 0 <= value <= 500:
        return None
    found = 1
    for factor in range(2, int(value) + 1):
        found *= factor
    return Fraction(found)


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    bits = base.numerator.bit_length() + base.denominator.bit_length()
    if exponent.denominator == 1:
        if abs(exponent) * bits > _MOST_BITS or (not base and exponent < 0):
            return None
        return base ** int(exponent)
    if base < 0 or abs(exponent.numerator) * bits > _MOST_BITS or exponent.denominator > 64:
        return None
    roots = _root(base.numerator, exponent.denominator), _root(base.denominator, exponent.denominator)
    if None in roots or not roots[0]:
        return Fraction(0) if base == 0 and exponent > 0 else None
    return Fraction(roots[0] or 0, roots[1] or 1) ** exponent.numerator


def _root(value: int, degree: int) -> int | None:
    """Return the whole root of a whole number, None where it has none."""
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
    return low if low**degree == value else None
