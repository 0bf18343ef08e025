"""Formats that write arguments as literals of their own: Python's, or Gemma's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from turngym.agents.gateway.conversations.call_formats.base import (
    CallFormat,
    Found,
    Reader,
    Tools,
    pieces,
    unclosed,
)

_LONGEST = 200_000
_DEEPEST = 50
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


def _pythonic(begin: str, end: str) -> Reader:
    """Return a reader of Python calls between two marks: a list of them, or one a line."""

    def read(text: str, tools: Tools) -> Iterator[Found]:
        for piece in pieces(text, begin, end):
            if piece.content is None:
                yield unclosed(piece, end)
                continue
            try:
                calls = [_python_call(node) for node in _python_calls(piece.content)]
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                yield Found(piece.start, piece.end, problem=f"the calls are not Python ({str(error)[:80]})")
                continue
            for place, (name, arguments) in enumerate(calls):
                yield Found(piece.end if place else piece.start, piece.end, name, arguments)

    return read


def _python_calls(text: str) -> list[ast.expr]:
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    body = ast.parse(text.strip()).body
    values = [each.value for each in body if isinstance(each, ast.Expr)]
    if not values or len(values) < len(body):
        raise ValueError("something other than a call")
    first = values[0]
    return first.elts if len(values) == 1 and isinstance(first, ast.List) else values


def _python_call(node: ast.expr) -> tuple[str, dict[str, Any]]:
    if not isinstance(node, ast.Call):
        raise ValueError("something other than a call")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("arguments need names")
    return ast.unparse(node.func), {str(each.arg): _value(each.value, 0) for each in node.keywords}


def _value(node: ast.expr, depth: int) -> Any:
    """Return a literal as data; the words of JSON are allowed too."""
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        return node.value
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(each, depth + 1) for each in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, depth + 1)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_value(key, depth + 1)): _value(value, depth + 1) for key, value in pairs if key is not None}
    raise ValueError("an argument is not a literal")


_GEMMA = ("<|tool_call>", "<tool_call|>")
_QUOTE = '<|"|>'
_GEMMA_NAME = re.compile(r"\s*call:([^\s{]+)\s*(?={)")
_GEMMA_KEY = re.compile(r"([^:{}\[\],<]+):")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


class _Gemma:
    """Reads the literals of Gemma: JSON with other quotes, and keys with none."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place

    def takes(self, mark: str) -> bool:
        """Return whether the text has a mark here, and pass it."""
        if not self.text.startswith(mark, self.place):
            return False
        self.place += len(mark)
        return True

    def value(self, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if self.takes(_QUOTE):
            return self._text()
        if self.takes("{"):
            return dict(self._items("}", depth, with_keys=True))
        if self.takes("["):
            return [value for _, value in self._items("]", depth, with_keys=False)]
        for word, value in _WORDS.items():
            if self.takes(word):
                return value
        number = _NUMBER.match(self.text, self.place)
        if number is None:
            raise ValueError("an argument that is no literal")
        self.place = number.end()
        return float(number[0]) if number[1] or number[2] else int(number[0])

    def _text(self) -> str:
        end = self.text.find(_QUOTE, self.place)
        if end < 0:
            raise ValueError("a text that is not closed")
        start, self.place = self.place, end + len(_QUOTE)
        return self.text[start:end]

    def _items(self, end: str, depth: int, with_keys: bool) -> Iterator[tuple[str, Any]]:
        if self.takes(end):
            return
        while True:
            key = self._key() if with_keys else ""
            yield key, self.value(depth + 1)
            if self.takes(end):
                return
            if not self.takes(","):
                raise ValueError("a missing comma")

    def _key(self) -> str:
        if self.takes(_QUOTE):
            key = self._text()
            if self.takes(":"):
                return key
        elif (match := _GEMMA_KEY.match(self.text, self.place)) is not None:
            self.place = match.end()
            return match[1].strip()
        raise ValueError("a missing name of an argument")


def _gemma(text: str, tools: Tools) -> Iterator[Found]:
    start = text.find(_GEMMA[0])
    while start >= 0:
        head = _GEMMA_NAME.match(text, start + len(_GEMMA[0]))
        reading = _Gemma(text, head.end() if head else start + len(_GEMMA[0]))
        try:
            arguments = reading.value() if head else None
            if head is None or not reading.takes(_GEMMA[1]):
                raise ValueError("no name, or no mark at the end")
            yield Found(start, reading.place, head[1], arguments)
        except ValueError as error:
            yield Found(start, max(reading.place, start + len(_GEMMA[0])), problem=f"the call has {error}")
        start = text.find(_GEMMA[0], max(reading.place, start + len(_GEMMA[0])))


FORMATS = (
    CallFormat("gemma", _GEMMA[:1], _gemma),
    CallFormat("lfm", ("<|tool_call_start|>",), _pythonic("<|tool_call_start|>", "<|tool_call_end|>")),
    CallFormat("llama4", ("<|python_start|>",), _pythonic("<|python_start|>", "<|python_end|>")),
    CallFormat("olmo", ("<function_calls>",), _pythonic("<function_calls>", "</function_calls>")),
)
