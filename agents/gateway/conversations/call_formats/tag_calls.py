"""Formats that write each argument between tags, as bare text: its type is the one that the tool declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from turngym.agents.gateway.conversations.call_formats.base import (
    CallFormat,
    Found,
    Reader,
    Tools,
    behind_headers,
    parameters_of,
    pieces,
    skipped,
    unclosed,
)
from turngym.agents.gateway.conversations.call_formats.typed import typed


class _Tags(NamedTuple):
    """Syntax of a call within its delimiters.

    Args:
        head: Start of a call; its group is the name of the tool.
        tail: End of a call.
        key: Start of a parameter; its group is the name.
        close: End of a parameter.
        inner: Text excluded from values because it starts the next parameter.
        lines: Whether the value stands on lines of its own.
    """

    head: re.Pattern[str]
    tail: str
    key: re.Pattern[str]
    close: str
    inner: str
    lines: bool = False


_FUNCTION = _Tags(
    re.compile(r"\s*<function=([^>\n]+)>"),
    "</function>",
    re.compile(r"\s*<parameter=([^>\n]+)>"),
    "</parameter>",
    "<parameter=",
    True,
)
_ARG_KEY = _Tags(
    re.compile(r"\s*([^\s<]+)"),
    "",
    re.compile(r"\s*<arg_key>([^<]+)</arg_key>\s*<arg_value>"),
    "</arg_value>",
    "<arg_key>",
)


def _invoke(prefix: str) -> _Tags:
    return _Tags(
        re.compile(rf'\s*<{prefix}invoke name="([^"\n]+)">'),
        f"</{prefix}invoke>",
        re.compile(rf'\s*<{prefix}parameter name="([^"\n]+)"[^>\n]*>'),
        f"</{prefix}parameter>",
        f"<{prefix}parameter name=",
    )


def _one(text: str, place: int, tags: _Tags, tools: Tools) -> tuple[Found, int] | None:
    """Return the call at a place, and where it ends; None where none starts."""
    head = tags.head.match(text, place)
    if head is None:
        return None
    name, start = head[1].strip(), head.start()
    declared, arguments, place = parameters_of(tools, name), {}, head.end()
    while (key := tags.key.match(text, place)) is not None:
        stop = text.find(tags.close, key.end())
        value = text[key.end() : stop]
        if stop < 0 or tags.inner in value:
            return Found(start, len(text), problem=f"parameter {key[1]!r} is not closed with {tags.close}"), len(text)
        if tags.lines:
            value = value.removeprefix("\n").removesuffix("\n")
        if key[1] in arguments:
            return Found(start, len(text), problem=f"parameter {key[1]!r} is given twice"), len(text)
        arguments[key[1]] = typed(value, declared.get(key[1]))
        place = stop + len(tags.close)
    place = skipped(text, place)
    if not text.startswith(tags.tail, place):
        return Found(start, len(text), problem=f"{name} holds something that is no parameter"), len(text)
    return Found(start, place + len(tags.tail), name, arguments), place + len(tags.tail)


def _tagged(begin: str, end: str, tags: _Tags) -> Reader:
    """Return a reader of calls between two marks."""

    def read(text: str, tools: Tools) -> Iterator[Found]:
        for piece in pieces(text, begin, end):
            if piece.content is None:
                yield unclosed(piece, end)
            else:
                yield from _all(piece.content, piece.start, piece.end, tags, tools)

    return read


def _all(text: str, start: int, end: int, tags: _Tags, tools: Tools) -> Iterator[Found]:
    """Yield the calls that a text consists of; none of them if it holds anything else."""
    found: list[Found] = []
    place = skipped(text, 0)
    while place < len(text):
        one = _one(text, place, tags, tools)
        if one is None or one[0].problem:
            problem = one[0].problem if one else "there is something other than a call between its marks"
            yield Found(start, end, problem=problem)
            return
        if found and not tags.tail:
            yield Found(start, end, problem="there is more than one name between its marks")
            return
        call, place = one[0], skipped(text, one[1])
        found.append(call._replace(start=end if found else start, end=end))
    if not found:
        yield Found(start, end, problem="there is no call between its marks")
    yield from found


_FUNCTIONS = "<atem:function_calls>"
_MESSAGE = "<|message|>"
_HEADERS = ("<|start|>assistant", "<|eom|>")
_LONGEST_NAME = 200


def _muse(text: str, tools: Tools) -> Iterator[Found]:
    """Yield calls that are messages of their own, with the header of each."""
    for found in _tagged(_FUNCTIONS, "</atem:function_calls>", _invoke("atem:"))(text, tools):
        start = found.start
        if text.endswith(_MESSAGE, 0, start):
            to = text.rfind(" to=", max(start - _LONGEST_NAME, 0), start)
            start = behind_headers(text, to, _HEADERS) if to >= 0 else start
        yield found._replace(start=start)


FORMATS = (
    CallFormat("xml", ("<tool_call>", "<function="), _tagged("<tool_call>", "</tool_call>", _FUNCTION)),
    CallFormat("seed", ("<seed:tool_call>",), _tagged("<seed:tool_call>", "</seed:tool_call>", _FUNCTION)),
    CallFormat("glm", ("<tool_call>", "<arg_key>"), _tagged("<tool_call>", "</tool_call>", _ARG_KEY)),
    CallFormat("muse", (_FUNCTIONS,), _muse),
    CallFormat(
        "minimax", ("<minimax:tool_call>",), _tagged("<minimax:tool_call>", "</minimax:tool_call>", _invoke(""))
    ),
    CallFormat("invoke", ("<function_calls>",), _tagged("<function_calls>", "</function_calls>", _invoke(""))),
)
