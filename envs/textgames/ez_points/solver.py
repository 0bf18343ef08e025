"""Solvable hands of numbers, and completions of partial formulas; exact, by exhaustive search.

A formula is a sum of terms, a term a product of factors, and a factor a number or a bracket around a formula. For each
hand (a sorted tuple of numbers, all of which are used) the tables below hold every value that such a part can have and
the fewest brackets that it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from turngym.envs.textgames.ez_points.formula import Frame, Stack, read, with_operand, with_operator

Hand: TypeAlias = tuple[int, ...]
Table: TypeAlias = dict[Fraction, int]
_CACHED = 20_000


@lru_cache(maxsize=_CACHED)
def splits(hand: Hand) -> tuple[tuple[Hand, Hand], ...]:
    """Return the ways to give a part of a sorted hand to the left and the rest to the right, none of them empty.

    >>> splits((2, 2, 3))
    (((2,), (2, 3)), ((2, 2), (3,)), ((2, 3), (2,)), ((3,), (2, 2)))
    """
    found = set()
    for chosen in range(1, 2 ** len(hand) - 1):
        left = tuple([number for index, number in enumerate(hand) if chosen >> index & 1])
        right = tuple([number for index, number in enumerate(hand) if not chosen >> index & 1])
        found.add((left, right))
    return tuple(sorted(found))


def _keep_fewest(table: Table, items: Iterable[tuple[Fraction, int]]) -> None:
    for value, brackets in items:
        if brackets < table.get(value, 99):
            table[value] = brackets


def _pairs(lefts: Table, rights: Table, operators: str) -> Iterator[tuple[Fraction, int]]:
    for one, cost in lefts.items():
        for other, more in rights.items():
            brackets = cost + more
            if "+" in operators:
                yield one + other, brackets
            if "-" in operators:
                yield one - other, brackets
            if "*" in operators:
                yield one * other, brackets
            if "/" in operators and other:
                yield one / other, brackets


@lru_cache(maxsize=_CACHED)
def formulas(hand: Hand, operators: str) -> Table:
    """Return value -> fewest brackets for the formulas of a hand.

    >>> {int(value): brackets for value, brackets in sorted(formulas((2, 3), "+-*").items())}
    {-1: 0, 1: 0, 5: 0, 6: 0}
    """
    if len(hand) == 1:
        return {Fraction(hand[0]): 0}
    table = dict(_products(hand, operators))
    for left, right in splits(hand):
        _keep_fewest(table, _pairs(formulas(left, operators), _terms(right, operators), _only(operators, "+-")))
    return table


@lru_cache(maxsize=_CACHED)
def factors(hand: Hand, operators: str) -> Table:
    """Return value -> fewest brackets for what can stand next to any operator: a number or a bracket."""
    if len(hand) == 1:
        return {Fraction(hand[0]): 0}
    return {value: brackets + 1 for value, brackets in formulas(hand, operators).items()}


@lru_cache(maxsize=_CACHED)
def _terms(hand: Hand, operators: str) -> Table:
    table = dict(factors(hand, operators))
    _keep_fewest(table, _products(hand, operators).items())
    return table


@lru_cache(maxsize=_CACHED)
def _products(hand: Hand, operators: str) -> Table:
    """Return the table of the terms of at least two factors."""
    table: Table = {}
    for left, right in splits(hand):
        _keep_fewest(table, _pairs(_terms(left, operators), factors(right, operators), _only(operators, "*/")))
    return table


def _only(operators: str, allowed: str) -> str:
    return "".join(operator for operator in operators if operator in allowed)


def _partners(one: Fraction, target: Fraction, operators: str) -> Iterator[Fraction]:
    """Yield every number that gives the target, which is not 0, together with ``one`` in any order."""
    if "+" in operators:
        yield target - one
    if "-" in operators:
        yield one - target
        yield target + one
    if one and "*" in operators:
        yield target / one
    if one and "/" in operators:
        yield target * one
        yield one / target


@lru_cache(maxsize=_CACHED)
def is_solvable(hand: Hand, target: int, operators: str) -> bool:
    """Return whether a formula of exactly the numbers of a sorted hand has the value ``target``, at least 1.

    >>> is_solvable((3, 3, 8, 8), 24, "+-*/"), is_solvable((1, 1, 1, 1), 24, "+-*/")
    (True, False)
    """
    goal = Fraction(target)
    for left, right in splits(hand):
        if len(left) > len(right):
            continue
        others = formulas(right, operators)
        for one in formulas(left, operators):
            if any(partner in others for partner in _partners(one, goal, operators)):
                return True
    return hand == (target,)


def _left_of(value: Fraction, operator: str, right: Fraction, lefts: Table) -> Iterable[Fraction]:
    """Return what gives a value on the left of an operator and an operand: one number, except with zeros."""
    if operator == "+":
        return (value - right,)
    if operator == "-":
        return (value + right,)
    if not right:
        return lefts if operator == "*" and not value else ()
    return (value / right if operator == "*" else value * right,)


def _spell(hand: Hand, value: Fraction, brackets: int, operators: str, only: str = "+-*/") -> tuple[str, ...] | None:
    """Return the tokens of a formula of at most so many brackets, None if there is none; by looking up its parts."""
    if len(hand) == 1:
        return (str(hand[0]),) if hand[0] == value else None
    for left, right in splits(hand):
        for operator in _only(operators, only):
            is_sum = operator in "+-"
            lefts = formulas(left, operators) if is_sum else _terms(left, operators)
            for operand, cost in (_terms if is_sum else factors)(right, operators).items():
                for other in _left_of(value, operator, operand, lefts):
                    if (more := lefts.get(other, 99)) + cost <= brackets:
                        spell = _spell_any if is_sum else _spell_term
                        tail = (_spell_term if is_sum else _spell_factor)(right, operand, cost, operators)
                        return (*spell(left, other, more, operators), operator, *tail)
    return None


def _spell_any(hand: Hand, value: Fraction, brackets: int, operators: str) -> tuple[str, ...]:
    """Return the tokens of a formula that the tables say exists."""
    tokens = _spell(hand, value, brackets, operators)
    assert tokens is not None, "the tables hold what the search finds"
    return tokens


def _spell_term(hand: Hand, value: Fraction, brackets: int, operators: str) -> tuple[str, ...]:
    """Return the tokens of a term: a factor, or a product."""
    if factors(hand, operators).get(value, 99) <= brackets:
        return _spell_factor(hand, value, brackets, operators)
    tokens = _spell(hand, value, brackets, operators, only="*/")
    assert tokens is not None, "the tables hold what the search finds"
    return tokens


def _spell_factor(hand: Hand, value: Fraction, brackets: int, operators: str) -> tuple[str, ...]:
    """Return the tokens of a number, or of a bracket around a formula."""
    if len(hand) == 1:
        return (str(hand[0]),)
    return ("(", *_spell_any(hand, value, brackets - 1, operators), ")")


def completion(stack: Stack, left: Hand, opens: int, target: Fraction, operators: str) -> tuple[str, ...] | None:
    """Return tokens that end a formula with the target as its value, None if none do.

    Args:
        stack: The formula so far, as :func:`~turngym.envs.textgames.ez_points.formula.read` left it.
        left: Sorted numbers that must still be used.
        opens: Number of further brackets that may be opened.
        target: Value to reach.
        operators: Operators that may be used.

    >>> from turngym.envs.textgames.ez_points.formula import START
    >>> " ".join(completion(START, (3, 3, 8, 8), 3, Fraction(24), "+-*/") or ())
    '8 / ( 3 - 8 / 3 )'
    """
    return _Search(target, operators).go_on(stack, left, opens)


class _Search:
    """One search: operands are taken from the tables as a whole, so only what is open is searched token by token."""

    def __init__(self, target: Fraction, operators: str) -> None:
        self._target, self._operators = target, operators
        self._dead: set[tuple[Stack, Hand, int]] = set()

    def go_on(self, stack: Stack, left: Hand, opens: int) -> tuple[str, ...] | None:
        """Return the tokens from here to the end."""
        key = stack, left, opens
        if key in self._dead:
            return None
        step = self._after_value if stack[-1].is_value else self._operand
        tail = step(stack, left, opens)
        if tail is None:
            self._dead.add(key)
        return tail

    def _after_value(self, stack: Stack, left: Hand, opens: int) -> tuple[str, ...] | None:
        top = stack[-1]
        if not left and len(stack) == 1:
            return () if top.base + top.term == self._target else None
        if len(stack) > 1 and (closed := read(stack, ")")) is not None:
            tail = self.go_on(closed, left, opens)
            if tail is not None:
                return (")", *tail)
        for operator in self._operators if left else ():
            tail = self.go_on((*stack[:-1], with_operator(top, operator)), left, opens)
            if tail is not None:
                return (operator, *tail)
        return None

    def _operand(self, stack: Stack, left: Hand, opens: int) -> tuple[str, ...] | None:
        for chosen, rest in (*splits(left), (left, ())):
            table = factors(chosen, self._operators)
            for value in table if rest or len(stack) > 1 else self._needed(stack[-1], table):
                brackets = table.get(value, 99)
                grown = with_operand(stack[-1], value)
                if brackets > opens or grown is None:
                    continue
                tail = self.go_on((*stack[:-1], grown), rest, opens - brackets)
                if tail is not None:
                    return (*_spell_factor(chosen, value, brackets, self._operators), *tail)
        return None

    def _needed(self, frame: Frame, table: Table) -> Iterable[Fraction]:
        """Return the last operands of the outermost frame that give the target: one, unless the term is 0."""
        gap = self._target - frame.base
        if not frame.term:
            return () if gap else table
        if frame.divides:
            return (frame.term / gap,) if gap else ()
        return (gap / frame.term,)


def solution(hand: Hand, target: int, operators: str) -> tuple[str, ...] | None:
    """Return the tokens of a formula of a sorted hand that has the value ``target``, None if there is none.

    >>> " ".join(solution((4, 8), 12, "+*") or ())
    '4 + 8'
    """
    return _spell(hand, Fraction(target), len(hand) - 1, operators)
