"""Judges of answers and updates: what they give on databases that agents never see."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from turngym.envs.sql.contents import Rows
from turngym.envs.sql.domains import ROLES
from turngym.envs.sql.engine import Content, Database
from turngym.envs.sql.schema import Row

HIDDEN = {1: 4, 2: 5, 3: 8}
"""Level -> databases, besides the one that agents see, on which an answer must be right: with more conditions, more are
needed until each of them matters."""
_DIGITS, _NUMBERS = 4, (int, float)


def is_right_answer(base: Database, contents: Iterator[Rows], solution: str, answer: str, is_ordered: bool) -> bool:
    """Return whether a query gives the rows of the solution on a database and on hidden ones.

    There are as many as ``HIDDEN`` says, and more as long as the solution gives equal rows on all: there constants
    would do.

    Args:
        base: The database, whose content is then replaced.
        contents: Contents of the hidden ones.
        solution: The right query.
        answer: The query to judge.
        is_ordered: Whether the order of the rows counts.
    """
    seen, number = list[Sequence[Row]](), base.new_number()
    for _ in _filled(base, contents):
        wanted, found = base.solve(solution), base.run(answer, may_write=False, number=number)
        if found.problem or not same_rows(wanted.rows, found.rows, is_ordered):
            return False
        seen.append(wanted.rows)
        if len(seen) > HIDDEN[base.schema.key[2]] and any(each != seen[0] for each in seen):
            return True
    return False


def is_right_update(base: Database, contents: Iterator[Rows], solution: str, statements: Sequence[str]) -> bool:
    """Return whether statements leave a database, and hidden ones, as the solution does.

    There are as many as ``HIDDEN`` says, and more as long as the solution changes nothing in any.

    Args:
        base: The database, without changes; its content is then replaced.
        contents: Contents of the hidden ones.
        solution: The right statement.
        statements: The statements to judge.
    """
    changed, number, roles = 0, base.new_number(), list(ROLES)
    for place in _filled(base, contents):
        changed += base.solve(solution, number).changed
        wanted = base.content(roles)
        base.undo()
        if any(base.run(each, may_write=True, number=number).problem for each in statements):
            return False
        if base.content(roles) != wanted:
            return False
        roles = base.written()
        if place >= HIDDEN[base.schema.key[2]] and changed:
            return True
    return False


def _filled(base: Database, contents: Iterator[Rows]) -> Iterator[int]:
    """Yield numbers of databases: first the one that there is, then those with other contents."""
    yield 0
    for number, rows in enumerate(contents, 1):
        base.fill(rows)
        yield number


def same_rows(wanted: Sequence[Row], found: Sequence[Row], is_ordered: bool) -> bool:
    """Return whether rows are equal, as multisets unless their order counts; numbers nearly so.

    >>> same_rows([(1, "a"), (2, None)], [(2, None), (1.0, "a")], is_ordered=False)
    True
    >>> same_rows([(1, "a"), (1, "a")], [(1, "a")], is_ordered=False), same_rows([(1,)], [("1",)], is_ordered=False)
    (False, False)
    """
    if len(wanted) != len(found) or any(len(one) != len(other) for one, other in zip(wanted, found, strict=True)):
        return False
    if not is_ordered:
        wanted, found = sorted(wanted, key=_key), sorted(found, key=_key)
    pairs = zip(itertools.chain.from_iterable(wanted), itertools.chain.from_iterable(found), strict=True)
    return all(_same(one, other) for one, other in pairs)


def _key(row: Row) -> list[tuple[int, Any]]:
    return [_rank(value) for value in row]


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, _NUMBERS):
        return 1, round(value, _DIGITS)
    return (2, value) if isinstance(value, str) else (3, value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        return one == other or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return type(one) is type(other) and bool(one == other)


def share_of_rows(wanted: Sequence[Row], found: Sequence[Row]) -> float:
    """Return the share of rows that are right; those that are not wanted count against it.

    >>> share_of_rows([(1,), (2,)], [(2,), (3,)])
    0.3333333333333333
    """
    one, other = (Counter(tuple(_key(row)) for row in rows) for rows in (wanted, found))
    most = (one | other).total()
    return (one & other).total() / most if most else 1.0


def share_of_changes(start: Content, wanted: Content, now: Content) -> float:
    """Return the share of changes that are made; those that are not wanted count against it.

    >>> share_of_changes({"x": [(1, 5), (2, 5)]}, {"x": [(1, 6), (2, 5)]}, {"x": [(1, 6), (2, 7)]})
    0.5
    """
    held, count = 0, 0
    for role, rows in start.items():
        if rows == wanted[role] == now[role]:
            continue
        before, goal, state = ({row[0]: row for row in each} for each in (rows, wanted[role], now[role]))
        for number in before.keys() | goal.keys() | state.keys():
            old, new, found = before.get(number), goal.get(number), state.get(number)
            is_counted = new != old or found != old
            count += is_counted
            held += is_counted and found == new
    return held / count if count else 1.0
