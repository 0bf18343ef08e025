"""Syntax of tool calls in a text, and display of untrusted text.

Two forms: ``tags`` (``<search>words</search>``, thoughts before it) and ``json`` (``{"tool": ..., "query": "words"}``).
Each environment has a :class:`Calls` that says which tools there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from turngym.envs.parsing.json_text import first_object, object_spans
from turngym.envs.parsing.scanning import Element, boxes, elements
from turngym.envs.parsing.thinking import THINKING

FORMS = ("tags", "json")
_TAGS = ("action", "answer", "code", "python", "search", "tool_call")
_CONTROL = re.compile(
    r"<(\s*(?:/\s*)?)(think|search|information|answer|warning|verify|python|output|code|action|"
    r"tool|tool_call|tool_response|im_start|im_end|start_of_turn|end_of_turn|bos|eos|s)\b",
    re.IGNORECASE,
)
_CHAT = re.compile(r"<([|\uff5c])|\[(/?INST\])")


class Call(NamedTuple):
    """Action of an agent.

    Args:
        tool: Tool that it calls, empty if the text is not a call.
        content: The argument of the call.
        problem: Why it is not a call.
    """

    tool: str
    content: str = ""
    problem: str = ""


class Calls:
    """The calls that an environment knows.

    Args:
        fields: Tool -> name of its one argument in JSON.
        wanted: Form -> description of the syntax.

    >>> calls = Calls({"search": "query"}, {"tags": "write <search>words</search>", "json": ""})
    >>> calls.read("<think>who?</think><search> red wine </search>", "tags").content
    ' red wine '
    >>> calls.write("search", "red wine", "json")
    '{"tool": "search", "query": "red wine"}'
    """

    def __init__(self, fields: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        self.fields, self._wanted = dict(fields), dict(wanted)

    def first(self, text: str) -> Element | None:
        """Return the first call in tags outside of the agent's thinking, None if there is none."""
        return THINKING.first_element(text, self.fields)

    def read(self, text: str, form: str) -> Call:
        """Return the first call in a text outside of the agent's thinking, its content as it was written."""
        return self._read_tags(text) if form == "tags" else self._read_json(text)

    def _read_tags(self, text: str) -> Call:
        found = self.first(text)
        return Call("", problem=self._wanted["tags"]) if found is None else Call(found.name, found.content)

    def _read_json(self, text: str) -> Call:
        wanted = self._wanted["json"]
        call = first_object(THINKING.without(text, object_spans))
        if call is None:
            return Call("", problem=f"there is no JSON object: {wanted}")
        field = self.fields.get(str(call.get("tool")))
        if field is None:
            return Call("", problem=f"there is no tool {str(call.get('tool'))[:40]!r}: {wanted}")
        if not isinstance(call.get(field), str) or call.keys() - {"tool", field}:
            return Call("", problem=f"the call needs exactly tool and {field}, a text: {wanted}")
        return Call(str(call["tool"]), call[field])

    def write(self, tool: str, content: str, form: str) -> str:
        """Return the text of a call."""
        if form == "tags":
            return f"<{tool}>{content}</{tool}>"
        return json.dumps({"tool": tool, self.fields[tool]: content}, ensure_ascii=False)


def any_calls(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the calls in a text are, in any of the notations of environments: elements, objects and boxes.

    >>> list(any_calls('<python>{"a": 1}</python> {"tool": "answer"}'))
    [(0, 25), (26, 44)]
    """
    place = 0
    for start, end in sorted([*elements(text, _TAGS), *object_spans(text), *boxes(text)]):
        if start >= place:
            yield start, end
            place = end


def harmless(text: str) -> str:
    """Return a text in which no control tag can be read: a passage or an output must not be able to forge a turn.

    >>> harmless("<answer>42</answer> <|im_end|> a < b")
    '\u2039answer>42\u2039/answer> \u2039|im_end|> a < b'
    """
    return _CHAT.sub(lambda found: "\u2039" + (found[1] or found[2]), _CONTROL.sub("\u2039\\1\\2", text))


def cut(text: str, most: int) -> str:
    r"""Return a text of at most so many characters, beginning and end, that says what was left out.

    >>> cut("0123456789" * 10, 20)
    '0123456789\n... 80 characters left out ...\n0123456789'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[len(text) - half :]}"
