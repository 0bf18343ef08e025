"""Formats whose arguments are JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from turngym.agents.gateway.conversations.call_formats.base import (
    DECODER,
    CallFormat,
    Found,
    Reader,
    Tools,
    behind_headers,
    loaded,
    pieces,
    skipped,
)

_NAMES = ("name", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args")
_IDS = ("id", "tool_call_id")
_WANTED = "the call is not a JSON object with a name and arguments"


def _calls_of(value: Any) -> list[tuple[str, Any, str]]:
    """Return name, arguments and id of the calls in data: an object, or a list of some; empty if it is neither."""
    found: list[tuple[str, Any, str]] = []
    for call in value if isinstance(value, list) else [value]:
        if not isinstance(call, dict):
            return []
        name = next((call[key] for key in _NAMES if key in call), None)
        arguments: Any = next((call[key] for key in _ARGUMENTS if key in call), {})
        if not isinstance(name, str):
            return []
        if isinstance(arguments, str):  # JSON in JSON, as APIs write it
            arguments = loaded(arguments)
        found.append((name, arguments, str(next((call[key] for key in _IDS if call.get(key)), ""))))
    return found


def _of_data(start: int, end: int, value: Any) -> Iterator[Found]:
    calls = _calls_of(value)
    if not calls:
        yield Found(start, end, problem=_WANTED)
    for place, (name, arguments, id) in enumerate(calls):
        yield Found(end if place else start, end, name, arguments, id)


def between(begin: str, end: str) -> Reader:
    """Return a reader of JSON between two marks."""

    def read(text: str, tools: Tools) -> Iterator[Found]:
        start = text.find(begin)
        while start >= 0:
            calls, stop = _decoded(text, start + len(begin))  # a text in the JSON may hold the second mark
            close = text.find(end, stop)
            if close < 0:
                yield Found(start, len(text), problem=f"the call is not closed with {end}")
                return
            is_whole = not text[stop:close].strip()
            yield from _of_data(start, close + len(end), calls if is_whole else None)
            start = text.find(begin, close + len(end))

    return read


def _decoded(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON at a place and where it ends; None if there is none."""
    place = skipped(text, place)
    try:
        return DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place


_CALLS = "[TOOL_CALLS]"
_ARGS = "[ARGS]"
_ID = "[CALL_ID]"


def _mistral(text: str, tools: Tools) -> Iterator[Found]:
    start = text.find(_CALLS)
    while start >= 0:
        inside = start + len(_CALLS)
        after = text.find(_CALLS, inside)
        stop = len(text) if after < 0 else after
        args = text.find(_ARGS, inside, stop)
        if args >= 0:
            name, _, id = text[inside:args].partition(_ID)
            arguments, end = _decoded(text, args + len(_ARGS))
            yield Found(start, end, name.strip(), arguments, id.strip(), "" if isinstance(arguments, dict) else _WANTED)
        else:
            calls, end = _decoded(text, inside)
            yield from _of_data(start, end if calls is not None else stop, calls)
        start = text.find(_CALLS, end)


_PYTHON_TAG = "<|python_tag|>"


def _llama(text: str, tools: Tools) -> Iterator[Found]:
    """Yield the calls of an answer that consists of nothing else, separated by semicolons."""
    place = len(text) - len(text.lstrip())
    if text.startswith(_PYTHON_TAG, place):
        place += len(_PYTHON_TAG)
    found: list[Found] = []
    while place < len(text) and not (found and text.startswith("<|", place)):
        call, end = _decoded(text, place)
        is_call = isinstance(call, dict) and "name" in call and (len(call) == 1 or bool(call.keys() & {*_ARGUMENTS}))
        if not is_call:  # data with a name, such as a person's, is none
            return
        start, place = place, end
        while place < len(text) and text[place] in "; \n":
            place += 1
        found += _of_data(start if found else 0, place, call)
    yield from found


_DEEPSEEK_CALLS = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_DEEPSEEK_CALL = ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
_DEEPSEEK_SEPARATOR = "<｜tool▁sep｜>"


def _deepseek(text: str, tools: Tools) -> Iterator[Found]:
    """Yield calls as ``function<sep>NAME`` with arguments in a code fence, or ``NAME<sep>ARGUMENTS``."""
    for start, end, content in _in_section(text, _DEEPSEEK_CALLS, _DEEPSEEK_CALL):
        name, mark, arguments = (content or "").strip().partition(_DEEPSEEK_SEPARATOR)
        fenced_name, fence, fenced = arguments.partition("\n```json\n")
        if fence:
            name, arguments = fenced_name, fenced.removesuffix("\n```")
        if mark:
            yield Found(start, end, name.strip(), loaded(arguments or "{}"))
        else:
            yield Found(start, end, problem="the call is not closed or has no arguments in JSON")


_KIMI_CALLS = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_KIMI_CALL = ("<|tool_call_begin|>", "<|tool_call_end|>")
_KIMI_NAME = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")


def _kimi(text: str, tools: Tools) -> Iterator[Found]:
    for start, end, content in _in_section(text, _KIMI_CALLS, _KIMI_CALL):
        id, mark, arguments = (content or "").partition("<|tool_call_argument_begin|>")
        name = _KIMI_NAME.fullmatch(id.strip())
        if not mark or name is None:
            yield Found(start, end, problem="the call is not closed or has no arguments in JSON")
        else:
            yield Found(start, end, name[1], loaded(arguments), id.strip())


def _in_section(text: str, section: tuple[str, str], marks: tuple[str, str]) -> Iterator[tuple[int, int, str | None]]:
    """Yield the pieces of a section; its marks belong to the first and the last piece."""
    for start, end, content in pieces(text, *marks):
        before = start
        while before and text[before - 1].isspace():
            before -= 1
        if text.endswith(section[0], 0, before):
            start = before - len(section[0])
        behind = skipped(text, end)
        if text.startswith(section[1], behind):
            end = behind + len(section[1])
        yield start, end, content


_TO = " to="
_HARMONY = re.compile(
    r" to=(?:functions\.)?([^\s<]{1,200})(?:<\|channel\|>(?:commentary|analysis))?(?: ?<\|constrain\|>)?(?: ?\w{1,20})?"
    r"<\|message\|>"
)
_HEADERS = ("<|channel|>commentary", "<|channel|>analysis", "<|start|>assistant", "<|call|>")


def _harmony(text: str, tools: Tools) -> Iterator[Found]:
    place = text.find(_TO)
    while place >= 0:
        end = place + len(_TO)
        if (match := _HARMONY.match(text, place)) is not None:
            start = behind_headers(text, place, _HEADERS)
            arguments, end = _decoded(text, match.end())
            yield Found(start, end, match[1], arguments, problem="" if arguments is not None else _WANTED)
        place = text.find(_TO, end)


_MARKED = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "phi": ("<|tool_call|>", "<|/tool_call|>"),
    "nemotron": ("<TOOLCALL>", "</TOOLCALL>"),
    "cohere": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "internlm": ("<|action_start|><|plugin|>", "<|action_end|>"),
}
FORMATS = (
    *(CallFormat(name, marks[:1], between(*marks)) for name, marks in _MARKED.items()),
    CallFormat("mistral", (_CALLS,), _mistral),
    CallFormat("deepseek", (_DEEPSEEK_CALLS[0], _DEEPSEEK_CALL[0]), _deepseek),
    CallFormat("kimi", (_KIMI_CALLS[0], _KIMI_CALL[0]), _kimi),
    CallFormat("harmony", (" to=functions.",), _harmony),
    CallFormat("llama", (_PYTHON_TAG,), _llama),
)
