"""Calls of tools in what a model wrote: read in the format of its chat template, and never invented.

A call is read if it is written completely, names a tool of the request, and its arguments are an object. Whatever else
stands in an answer stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from turngym.trainers.integrations.gateway.messages import ToolCall, canonical_json, digest

ToolFormat: TypeAlias = Literal["hermes", "xml", "mistral", "llama"]
"""``hermes``: JSON between ``<tool_call>`` marks, also Qwen's. ``xml``: functions and parameters between the same
marks, as of Qwen's coding models. ``mistral``: behind ``[TOOL_CALLS]``. ``llama``: the whole answer is the JSON."""

_FUNCTION = re.compile(r"\s*<function=([^>\n]+)>(.*?)</function>\s*", re.DOTALL)
_MISTRAL = "[TOOL_CALLS]"
_MISTRAL_ARGS = "[ARGS]"
_PYTHON_TAG = "<|python_tag|>"
_DECODER = json.JSONDecoder()
_ID_LENGTH = 9


class Found(NamedTuple):
    """A call in a text: where it stands, the tool, and its arguments as data."""

    start: int
    end: int
    name: str
    arguments: Any


@dataclass(frozen=True)
class Answer:
    """What an answer says, calls apart.

    Args:
        text: The text without the calls.
        calls: The calls.
        unread: Whether it looks like a call that could not be read.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    unread: bool = False


def read_answer(text: str, format: ToolFormat, names: Iterable[str], key: str) -> Answer:
    """Return the calls in an answer, and its text without them.

    Args:
        text: What the model wrote, without the end token.
        format: The format of its chat template.
        names: The tools of the request.
        key: What the ids of the calls are made of; unique for each answer.

    >>> read_answer('Hm.<tool_call>{"name": "ls", "arguments": {}}</tool_call>', "hermes", ["ls"], "").text
    'Hm.'
    >>> read_answer('<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "hermes", ["ls"], "").calls
    ()
    """
    allowed = frozenset(names)
    found = [each for each in _READERS[format](text) if _is_call(each, allowed)]
    if not found:
        return Answer(text, unread=_looks_like_a_call(text, format))
    kept, end = [], 0
    for each in found:
        kept.append(text[end : each.start])
        end = each.end
    kept.append(text[end:])
    calls = [ToolCall(call_id(key, k), each.name, canonical_json(each.arguments)) for k, each in enumerate(found)]
    rest = "".join(kept).strip()
    return Answer(rest, tuple(calls), unread=_looks_like_a_call(rest, format))


def call_id(key: str, number: int) -> str:
    """Return the id of a call: nine letters and digits, which is what the strictest templates ask for."""
    return digest([key, number])[:_ID_LENGTH]


def _is_call(found: Found, allowed: frozenset[str]) -> bool:
    return found.name in allowed and isinstance(found.arguments, dict)


def _looks_like_a_call(text: str, format: ToolFormat) -> bool:
    marks = {"hermes": "<tool_call>", "xml": "<tool_call>", "mistral": _MISTRAL, "llama": '"name"'}
    return marks[format] in text


def _between(text: str, begin: str, end: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and content of each piece between two marks; an expression would be quadratic without an end."""
    start = text.find(begin)
    while start >= 0:
        stop = text.find(end, start + len(begin))
        if stop < 0:
            return
        yield start, stop + len(end), text[start + len(begin) : stop]
        start = text.find(begin, stop + len(end))


def _marked(text: str) -> Iterator[tuple[int, int, str]]:
    return _between(text, "<tool_call>", "</tool_call>")


def _hermes(text: str) -> Iterator[Found]:
    for start, end, content in _marked(text):
        call = _loaded(content)
        if isinstance(call, dict):
            yield Found(start, end, str(call.get("name")), call.get("arguments", {}))


def _xml(text: str) -> Iterator[Found]:
    for start, end, content in _marked(text):
        function = _FUNCTION.fullmatch(content)
        arguments = None if function is None else _parameters(function[2])
        if function is not None and arguments is not None:
            yield Found(start, end, function[1].strip(), arguments)


def _parameters(text: str) -> dict[str, Any] | None:
    """Return the parameters of a function's call; None where there is anything else."""
    found: dict[str, Any] = {}
    last = 0
    for start, end, content in _between(text, "<parameter=", "</parameter>"):
        name, mark, value = content.partition(">")
        if text[last:start].strip() or not (name and mark) or "\n" in name:
            return None
        found[name] = _value(value.removeprefix("\n").removesuffix("\n"))
        last = end
    return None if text[last:].strip() else found


def _value(text: str) -> Any:
    """Return a parameter: numbers, lists and objects as such, everything else as text."""
    value = _loaded(text)
    return text if value is None or isinstance(value, str) else value


def _mistral(text: str) -> Iterator[Found]:
    start = text.find(_MISTRAL)
    while start >= 0:
        after = text.find(_MISTRAL, start + len(_MISTRAL))
        end = len(text) if after < 0 else after
        body = text[start + len(_MISTRAL) : end]
        name, mark, arguments = body.partition(_MISTRAL_ARGS)
        if mark:
            yield Found(start, end, name.strip(), _loaded(arguments))
        else:
            calls = _loaded(body)
            for place, call in enumerate(calls if _is_call_list(calls) else ()):
                yield Found(end if place else start, end, str(call.get("name")), call.get("arguments", {}))
        start = after


def _is_call_list(calls: Any) -> bool:
    return isinstance(calls, list) and all(isinstance(call, dict) for call in calls)


def _llama(text: str) -> Iterator[Found]:
    """Yield the calls of an answer that consists of nothing else, separated by semicolons."""
    place = len(text) - len(text.lstrip())
    if text.startswith(_PYTHON_TAG, place):
        place += len(_PYTHON_TAG)
    found = []
    while place < len(text):
        try:
            call, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if not isinstance(call, dict) or "name" not in call:
            return
        start, place = place, end
        while place < len(text) and text[place] in "; \n":
            place += 1
        found.append(Found(start, place, str(call["name"]), call.get("parameters", call.get("arguments", {}))))
    if found:
        found[0] = found[0]._replace(start=0)
    yield from found


def _loaded(text: str) -> Any:
    """Return JSON as data, None if it is none."""
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


_READERS: dict[ToolFormat, Callable[[str], Iterator[Found]]] = {
    "hermes": _hermes,
    "xml": _xml,
    "mistral": _mistral,
    "llama": _llama,
}

INSTRUCTION = (
    "You may call one or more tools. Their signatures are between these marks:\n<tools>\n{tools}\n</tools>\n"
    "To call a tool, write a JSON object between these marks:\n"
    '<tool_call>\n{{"name": NAME, "arguments": OBJECT}}\n</tool_call>'
)
"""What a template that knows no tools is given as a system text."""


def written_call(call: ToolCall) -> str:
    """Return a call in the format ``hermes``."""
    content = json.dumps({"name": call.name, "arguments": call.decoded}, ensure_ascii=False)
    return f"<tool_call>\n{content}\n</tool_call>"
