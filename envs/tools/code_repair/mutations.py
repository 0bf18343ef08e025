"""Faults as they are often made, planted in programs as changes of their text.

Each change replaces one piece of the text: an operator, a number, a comparison, the order of two arguments, a base
case, a first value. Comments, layout and everything else stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_OPERATORS = {"+": "-", "-": "+", "*": "+", "//": "*", "%": "//", "&": "|", "^": "|", ">>": "<<"}
_COMPARISONS = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "not in": ("in",),
    "is": ("is not",),
}
_CALLS = {"min": "max", "max": "min"}


class Change(NamedTuple):
    """One piece of a text replaced.

    Args:
        kind: Kind of the fault.
        start: Start of the piece, in characters.
        end: Its end.
        text: Replacement.
    """

    kind: str
    start: int
    end: int
    text: str


def apply(source: str, changes: tuple[Change, ...]) -> str:
    """Return a program with changes that do not overlap.

    >>> apply("a + b", (Change("operator", 2, 3, "-"),))
    'a - b'
    """
    for change in sorted(changes, key=lambda one: -one.start):
        source = source[: change.start] + change.text + source[change.end :]
    return source


def changes(source: str) -> tuple[Change, ...]:
    r"""Return every fault that can be planted in a program, in the order of the text.

    >>> [change.kind for change in changes("def f(a):\n    return a + 1\n")]
    ['operator', 'number', 'number']
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    finder = _Finder(source, starts)
    found = [change for node in ast.walk(ast.parse(source)) for change in finder.of(node)]
    return tuple(sorted(set(found), key=lambda one: (one.start, one.end, one.text)))


class _Finder:
    def __init__(self, source: str, starts: list[int]) -> None:
        self._source, self._starts = source, starts

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node stands; the programs are plain ASCII, so bytes are characters."""
        assert isinstance(node, ast.expr | ast.stmt) and node.end_lineno and node.end_col_offset is not None
        starts = self._starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def of(self, node: ast.AST) -> Iterator[Change]:
        """Give the faults of one node."""
        if isinstance(node, ast.BinOp):
            yield from self._between("operator", node.left, node.right, {k: (v,) for k, v in _OPERATORS.items()})
        elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
            yield from self._between("comparison", node.left, node.comparators[0], _COMPARISONS)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            start, end = self._span(node)
            for value in (node.value + 1, node.value - 1):
                if value >= 0:
                    yield Change("number", start, end, str(value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield Change("truth", *self._span(node), str(not node.value))
        elif isinstance(node, ast.BoolOp):
            both = {"and": ("or",), "or": ("and",)}
            yield from self._between("condition", node.values[0], node.values[1], both)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.AugAssign):
            yield from self._between("operator", node.target, node.value, {"+=": ("-=",), "-=": ("+=",)})
        elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[0], ast.Return):
            yield from self._missing_case(node)

    def _between(
        self, kind: str, left: ast.AST, right: ast.AST, known: Mapping[str, tuple[str, ...]]
    ) -> Iterator[Change]:
        start, end = self._span(left)[1], self._span(right)[0]
        middle = self._source[start:end]
        sign = middle.strip()
        if sign in known:
            place = start + middle.index(sign)
            for text in known[sign]:
                yield Change(kind, place, place + len(sign), text)

    def _call(self, node: ast.Call) -> Iterator[Change]:
        name = self._text(node.func)
        if name in _CALLS:
            yield Change("function", *self._span(node.func), _CALLS[name])
        if len(node.args) == 2 and name not in ("min", "max"):
            first, second = node.args
            start, end = self._span(first)[0], self._span(second)[1]
            between = self._source[self._span(first)[1] : self._span(second)[0]]
            yield Change("arguments", start, end, self._text(second) + between + self._text(first))

    def _missing_case(self, node: ast.If) -> Iterator[Change]:
        start, end = self._span(node)
        first = self._source.rfind("\n", 0, start) + 1
        yield Change("base case", first, end + 1, "")
