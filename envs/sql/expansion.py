"""A bound on what SQLite makes of a statement before it counts anything.

SQLite puts the columns of a select in FROM, or of a WITH part, in place of their names, so that the text
``SELECT y+y AS y FROM (SELECT y+y AS y FROM (...))`` doubles with every level. No limit of SQLite counts this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

MOST_EXPANDED = 200_000
"""Names and values that a statement may have once all selects in it are expanded."""
_MOST_SQUARED = 8_000_000
"""The same where each of them is an alias in WHERE or ORDER BY, which SQLite replaces, too."""
_MOST_PARTS = 40
_SHORT = 360
"""Characters, and so names, up to which a statement with one select is small: with n of them, one select in FROM gives
at most n * n / 4 names, and 4 * n * n * n / 27 for aliases, which is below ``_MOST_SQUARED``."""
_MOST_SELECTS = 100
"""Selects of a statement, which are read by recursion."""
_BLANKS = " \t\n\x0b\f\r\ufeff"
"""Blanks of SQLite: every other character from U+0080 on is one of names. U+FEFF is a blank where a token begins."""
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^]]*(?:\]|\Z)"""
    rf"""|[{_BLANKS}]|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*|[0-9][\w.$\x80-\U0010ffff]*|.""",
    re.DOTALL | re.ASCII,
)
_SELECTS = ("select", "values", "with")
_BEFORE_TABLES = ("from", "join", ",", "(")
_AFTER_TABLES = ("select", "where", "group", "order", "having", "limit", "union", "except", "intersect")
# fmt: off
_KEYWORDS = frozenset((
    "all", "and", "as", "between", "case", "distinct", "else", "except", "exists", "from", "group", "having", "in",
    "intersect", "is", "join", "limit", "not", "on", "or", "order", "then", "union", "when", "where",
))
"""Words that are not names unless they are quoted."""
# fmt: on
_MARKS = _KEYWORDS.union(_SELECTS, "().,")


class _Token(NamedTuple):
    name: str
    is_counted: bool


@dataclass
class _Select:
    """A select with those in its expressions: what it names, and the selects in its FROM clauses."""

    part: str = ""
    count: int = 1
    inner: list[_Select] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


@lru_cache(maxsize=64)  # a judge runs a statement on several databases
def is_too_large(text: str) -> bool:
    """Return whether a statement may become too large when SQLite expands it.

    >>> is_too_large("SELECT y FROM (SELECT a + b AS y FROM t)")
    False
    >>> is_too_large("SELECT y + y AS y FROM (" * 20 + "SELECT a AS y FROM t" + ")" * 20)
    True
    """
    if len(text) <= _SHORT and sum(map(text.lower().count, _SELECTS)) <= 1:
        return False
    tokens = list(_tokens(text))
    if sum(token.name in _SELECTS for token in tokens) > _MOST_SELECTS:
        return True
    whole, parts = _read(tokens)
    known: dict[str, float] = {}
    return len(parts) > _MOST_PARTS or _size(whole, parts, known) > MOST_EXPANDED


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.findall(text):
        if found[0] in _BLANKS or found.startswith(("--", "/*")):
            continue
        mark = found[0]
        if mark in "'\"`[" and len(found) > 1:
            name = found[1:-1] if mark == "[" else found[1:-1].replace(mark * 2, mark)
            yield _Token(f'"{name}' if name.lower() in _MARKS else name.lower(), True)
        else:
            name = found.lower()
            yield _Token(name, name not in _KEYWORDS and (mark.isalnum() or mark in "_*" or mark > "\x7f"))


def _read(tokens: Sequence[_Token]) -> tuple[_Select, Mapping[str, list[_Select]]]:
    """Return the whole statement, and the selects of its WITH parts by their names."""
    names = ["", "", *(token.name for token in tokens), ""]
    whole, parts = _Select(), dict[str, list[_Select]]()
    levels = [(whole, False)]
    is_from = False
    for place, token in enumerate(tokens, 2):
        before, name, after = names[place - 1 : place + 2]
        is_table = before == "in" or (is_from and before in _BEFORE_TABLES)
        if name == "(":
            levels.append((levels[-1][0], is_from))
            if after in _SELECTS and (before in ("as", "materialized") or (is_table and before != "in")):
                levels[-1] = (_inner(names, place, levels[-1][0], parts), is_from)
        elif name == ")" and len(levels) > 1:
            is_from = levels.pop()[1]
        elif name == "from" or name in _AFTER_TABLES:
            is_from = name == "from"
        if token.is_counted and after != ".":
            levels[-1][0].count += 1
            if is_table:
                levels[-1][0].tables.append(name)
    return whole, parts


def _inner(names: Sequence[str], place: int, around: _Select, parts: dict[str, list[_Select]]) -> _Select:
    """Return the select that a parenthesis in a FROM clause, or after the AS of a WITH part, begins."""
    if names[place - 1] in _BEFORE_TABLES:
        around.inner.append(_Select(around.part))
        return around.inner[-1]
    found = _Select(_part(names, place - 1))
    parts.setdefault(found.part, []).append(found)
    return found


def _part(names: Sequence[str], place: int) -> str:
    """Return the name before the AS at or before a place, and before a list of columns if there is one."""
    while place > 1 and names[place] != "as":
        place -= 1
    place -= 1
    if names[place] == ")":
        while place > 1 and names[place] != "(":
            place -= 1
        place -= 1
    return names[place]


def _size(select: _Select, parts: Mapping[str, list[_Select]], known: dict[str, float]) -> float:
    """Return the size of a select when it is expanded: each name in it may stand for all of those in its FROM clause.

    Args:
        select: The select.
        parts: The WITH parts.
        known: Sizes of those that are known; infinite while they are computed, so that a circle is too large.
    """
    inner = sum(_size(each, parts, known) for each in select.inner)
    for name in select.tables:
        if name in parts and not (name == select.part and len(parts[name]) == 1):
            if name not in known:
                known[name] = float("inf")
                known[name] = sum(_size(each, parts, known) for each in parts[name])
            inner += known[name]
    size = select.count * (1 + inner)
    return size if select.count * size <= _MOST_SQUARED else float("inf")
