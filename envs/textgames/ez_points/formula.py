"""Formulas of whole numbers, + - * / and brackets, read token by token and evaluated exactly as they grow.

A reading is a stack of frames, one for each bracket that is open and one for the whole. A frame keeps what is needed
to go on: before an operand, the pair ``(base, factor)`` and whether to divide; after it, ``(base, term)``, so that the
frame's value is ``base + term``. That is enough for the usual precedence, and two prefixes with equal frames have
equal futures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

OPERATORS = ("+", "-", "*", "/")
_TOKEN = re.compile(r"\s*([0-9]{1,3}|[-+*/()×÷−])\s*")
_ALIASES = {"×": "*", "÷": "/", "−": "-"}
_ZERO, _ONE = Fraction(0), Fraction(1)


class Frame(NamedTuple):
    """One bracket while it is read.

    Args:
        base: Sum of the terms that are complete.
        term: Before an operand: what to multiply it with, or to divide by it. After an operand: the unfinished term.
        divides: Whether the operand that is expected divides.
        is_value: Whether an operand has just been read, so that ``base + term`` is a value.
    """

    base: Fraction
    term: Fraction
    divides: bool
    is_value: bool


Stack = tuple[Frame, ...]
_EMPTY = Frame(_ZERO, _ONE, False, False)
START: Stack = (_EMPTY,)


def with_operand(frame: Frame, value: Fraction) -> Frame | None:
    """Return a frame after an operand, None if it divides by zero."""
    if not frame.divides:
        return Frame(frame.base, frame.term * value, False, True)
    return Frame(frame.base, frame.term / value, False, True) if value else None


def with_operator(frame: Frame, operator: str) -> Frame:
    """Return a frame after an operator."""
    if operator == "+":
        return Frame(frame.base + frame.term, _ONE, False, False)
    if operator == "-":
        return Frame(frame.base + frame.term, -_ONE, False, False)
    return Frame(frame.base, frame.term, operator == "/", False)


def read(stack: Stack, token: str) -> Stack | None:
    """Return a stack after one more token that fits syntactically, None if it divides by zero."""
    top = stack[-1]
    if token == "(":
        return (*stack, _EMPTY)
    if token == ")":
        outer = with_operand(stack[-2], top.base + top.term)
        return None if outer is None else (*stack[:-2], outer)
    if token in OPERATORS:
        return (*stack[:-1], with_operator(top, token))
    grown = with_operand(top, Fraction(int(token)))
    return None if grown is None else (*stack[:-1], grown)


def token_of(text: str) -> str:
    """Return a token with the typographic signs replaced.

    >>> token_of("×"), token_of("12")
    ('*', '12')
    """
    return _ALIASES.get(text, text)


def tokenize(text: str) -> list[str] | None:
    """Return the tokens of a formula, None if there is anything else in the text.

    >>> tokenize("(10 - 4)×2"), tokenize("2 ** x")
    (['(', '10', '-', '4', ')', '*', '2'], None)
    """
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(token_of(match[1]))
        position = match.end()
    return tokens


def is_formula(tokens: Sequence[str]) -> bool:
    """Return whether tokens are a whole formula: operands and operators take turns and every bracket is closed.

    >>> is_formula(["(", "1", "+", "2", ")"]), is_formula(["1", "2"]), is_formula(["(", "1"])
    (True, False, False)
    """
    depth, has_value = 0, False
    for token in tokens:
        if has_value != (token == ")" or token in OPERATORS):
            return False
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth < 0:
                return False
        else:
            has_value = token not in OPERATORS
    return has_value and depth == 0


def evaluate(tokens: Sequence[str]) -> Fraction | None:
    """Return the exact value of a formula, None if it divides by zero.

    Raises:
        ValueError: The tokens are not a formula.

    >>> evaluate(["8", "/", "(", "3", "-", "8", "/", "3", ")"])
    Fraction(24, 1)
    >>> evaluate(["1", "/", "(", "2", "-", "2", ")"]) is None
    True
    """
    if not is_formula(tokens):
        raise ValueError(f"no formula: {' '.join(tokens)!r}")
    stack = START
    for token in tokens:
        grown = read(stack, token)
        if grown is None:
            return None
        stack = grown
    return stack[0].base + stack[0].term


def next_tokens(left: tuple[int, ...], operators: str, depth: int, opens: int, has_value: bool) -> tuple[str, ...]:
    """Return the tokens after which a formula can still be ended.

    Args:
        left: Sorted numbers that must still be used.
        operators: Operators that may be used.
        depth: Brackets that are open.
        opens: Number of further brackets that may be opened.
        has_value: Whether the last token ended an operand.

    >>> next_tokens((3, 3, 8), "+*", 0, 2, False), next_tokens((), "+*", 1, 1, True), next_tokens((), "+*", 0, 1, True)
    (('3', '8', '('), (')',), ('=',))
    """
    if has_value:
        if not left:
            return (")",) if depth else ("=",)
        return (*operators, ")") if depth else tuple(operators)
    numbers = dict.fromkeys(map(str, left))
    return (*numbers, "(") if opens and len(left) > 1 else tuple(numbers)


def without_result(text: str, target: int) -> str:
    """Return a formula without ``=`` or ``= target`` at its end.

    >>> without_result("4 + 8 = 12", 12), without_result("4 + 8", 12)
    ('4 + 8 ', '4 + 8')
    """
    formula, equals, result = text.partition("=")
    return formula if not equals or result.strip() in ("", str(target)) else text


def value_text(value: Fraction | None) -> str:
    """Return the value of a formula as told to the agent, None where it divides by zero.

    >>> value_text(Fraction(7, 2)), value_text(None)
    ('7/2', 'no number, because it divides by zero')
    """
    return "no number, because it divides by zero" if value is None else str(value)
