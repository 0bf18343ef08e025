"""A format of tool calls: the marks that a call starts with, and a reader of complete calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Tools: TypeAlias = Sequence[Mapping[str, Any]]
"""Tools as chat templates take them: ``{"type": "function", "function": {...}}``."""
DECODER = json.JSONDecoder()
_LEFT = "the call is not closed with {end}"


class Found(NamedTuple):
    """A call in a text, or the start of one that cannot be read.

    Args:
        start: Start position.
        end: Its end.
        name: The tool.
        arguments: Its arguments as data.
        id: Its id, where the format writes one.
        problem: Why it cannot be read; empty if it can.
    """

    start: int
    end: int
    name: str = ""
    arguments: Any = None
    id: str = ""
    problem: str = ""


Reader: TypeAlias = Callable[[str, Tools], Iterator[Found]]


@dataclass(frozen=True)
class CallFormat:
    """A format of tool calls.

    Args:
        name: Its name.
        marks: Texts that a call starts with; one of them in a text that holds no call is a call that is malformed.
        read: Yields the calls in a text in order, malformed ones too.
    """

    name: str
    marks: tuple[str, ...]
    read: Reader


class Piece(NamedTuple):
    """A text between two marks: where the marks start and end, and the text; None if the second mark is missing."""

    start: int
    end: int
    content: str | None


def pieces(text: str, begin: str, end: str) -> Iterator[Piece]:
    """Yield what stands between two marks, in linear time; the last piece may be unclosed."""
    start = text.find(begin)
    while start >= 0:
        inside = start + len(begin)
        stop = text.find(end, inside)
        if stop < 0:
            yield Piece(start, len(text), None)
            return
        yield Piece(start, stop + len(end), text[inside:stop])
        start = text.find(begin, stop + len(end))


def unclosed(piece: Piece, end: str) -> Found:
    """Return the call that a piece without an end is."""
    return Found(piece.start, piece.end, problem=_LEFT.format(end=end))


def skipped(text: str, place: int) -> int:
    """Return the first place from ``place`` on that is not space."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def behind_headers(text: str, place: int, headers: Sequence[str]) -> int:
    """Return where the headers start that end at a place, each of them once at most, the last one first."""
    for header in headers:
        place -= len(header) * text.endswith(header, 0, place)
    return place


def loaded(text: str) -> Any:
    """Return JSON as data; None if it is none.

    >>> loaded('{"a": 1}'), loaded("{a: 1}"), loaded("NaN")
    ({'a': 1}, None, None)
    """
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


def parameters_of(tools: Tools, name: str) -> Mapping[str, Any]:
    """Return the declared parameters of a tool: name -> JSON schema."""
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, Mapping) and function.get("name") == name:
            schema = function.get("parameters")
            found = schema.get("properties") if isinstance(schema, Mapping) else None
            return found if isinstance(found, Mapping) else {}
    return {}
