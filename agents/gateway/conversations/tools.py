"""Calls of tools in what a model wrote: read in the format of its chat template, and never invented.

A call is read if it is complete, names a tool of the request, and its arguments are an object. Everything else in an
answer stays text, and so does a call inside of the model's thinking.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from turngym.agents.gateway.conversations.call_formats import FORMATS, CallFormat, Found, Tools
from turngym.agents.gateway.conversations.messages import ToolCall, canonical_json, digest
from turngym.envs.parsing.thinking import Thinking

MOST_MALFORMED = 32
"""Malformed calls after which no more are looked for: each of them may cost the length of the text."""
_ID_LENGTH = 9
_MARKS = tuple(sorted({mark for each in FORMATS.values() for mark in each.marks}))


@dataclass(frozen=True)
class Answer:
    """Text of an answer without its calls.

    Args:
        text: The text without the calls.
        calls: The calls.
        problem: Why a call in the text could not be read; empty if there is none.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    problem: str = ""

    @property
    def unread(self) -> bool:
        """True if it holds a call that could not be read."""
        return bool(self.problem)


def read_answer(text: str, format: CallFormat, tools: Tools, key: str, thinking: Thinking | None = None) -> Answer:
    """Return the calls in an answer, and its text without them.

    Args:
        text: Completion without the end token.
        format: The format of its chat template.
        tools: The tools of the request.
        key: Source of call ids if the format has none; unique per answer.
        thinking: Reasoning markers of the model.

    >>> tools = [{"type": "function", "function": {"name": "ls"}}]
    >>> read_answer('Hm.<tool_call>{"name": "ls", "arguments": {}}</tool_call>', FORMATS["hermes"], tools, "").text
    'Hm.'
    >>> read_answer('<tool_call>{"name": "rm"}</tool_call>', FORMATS["hermes"], tools, "").problem
    "there is no tool 'rm'"
    """
    names = {str(tool["function"]["name"]) for tool in tools}
    spoken = (thinking or Thinking()).masked(text, partial(_calls_in, format, tools))
    found: list[Found] = []
    problems: list[str] = []
    for each in format.read(spoken, tools):
        if why := _problem(each, names):
            problems.append(why)
            if len(problems) == MOST_MALFORMED:
                break
        else:
            found.append(each)
    problem = problems[0] if problems else ""
    kept, seen, end = [], [], 0
    for each in found:
        kept.append(text[end : each.start])
        seen.append(spoken[end : each.start])
        end = each.end
    kept.append(text[end:])
    seen.append(spoken[end:])
    if not problem and any(mark in part for part in seen for mark in _MARKS):
        problem = f"there is a call in another form than the model's ({format.name})"
    rest = "".join(kept)
    return Answer(rest.strip() if found else rest, _as_calls(found, key), problem)


def _calls_in(format: CallFormat, tools: Tools, text: str) -> Iterator[tuple[int, int]]:
    """Yield where the complete calls in a text are."""
    malformed = 0
    for each in format.read(text, tools):
        if not each.problem:
            yield each.start, each.end
        elif (malformed := malformed + 1) == MOST_MALFORMED:
            return


def _as_calls(found: list[Found], key: str) -> tuple[ToolCall, ...]:
    calls, used = [], set[str]()
    for place, each in enumerate(found):
        id = each.id if each.id and each.id not in used else call_id(key, place)
        used.add(id)
        calls.append(ToolCall(id, each.name, canonical_json(each.arguments)))
    return tuple(calls)


def call_id(key: str, number: int) -> str:
    """Return the id of a call: nine letters and digits, which is what the strictest templates ask for."""
    return digest([key, number])[:_ID_LENGTH]


def _problem(found: Found, names: set[str]) -> str:
    """Return why a call is not one; empty if it is."""
    if found.problem:
        return found.problem
    if found.name not in names:
        return f"there is no tool {found.name[:40]!r}"
    if not isinstance(found.arguments, dict):
        return f"the arguments of {found.name} are not an object"
    try:
        json.dumps(found.arguments, allow_nan=False)
    except ValueError:
        return f"the arguments of {found.name} hold a number that is not finite"
    return ""


INSTRUCTION = (
    "You may call one or more tools. Their signatures are between these marks:\n<tools>\n{tools}\n</tools>\n"
    "To call a tool, write {how}"
)
"""System text for templates that list no tools."""
HERMES_CALL = 'a JSON object between these marks:\n<tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call>'
"""Format of a call for a template without one."""


def written_call(call: ToolCall) -> str:
    """Return a call in the format ``hermes``."""
    content = json.dumps({"name": call.name, "arguments": call.decoded}, ensure_ascii=False)
    return f"<tool_call>\n{content}\n</tool_call>"
