"""Known calls, to find the format of a chat template by reading back what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Any

from turngym.agents.gateway.conversations.call_formats import FORMATS, CallFormat, Found, Tools
from turngym.agents.gateway.conversations.messages import ChatMessage, ToolCall, canonical_json

TOOL = "probetool"
RESULT = "proberesult"
_ID = "call_probe_1"
_TYPES = {
    "x": "string",
    "text": "string",
    "digits": "string",
    "whole": "integer",
    "part": "number",
    "flag": "boolean",
    "nothing": "null",
    "items": "array",
    "fields": "object",
}
PROBE_TOOLS: Tools = (
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "-",
            "parameters": {"type": "object", "properties": {name: {"type": kind} for name, kind in _TYPES.items()}},
        },
    },
)


def _call(arguments: dict[str, Any], id: str = _ID) -> ToolCall:
    return ToolCall(id, TOOL, canonical_json(arguments))


ASKED = ChatMessage("user", "-")
PROBE_CALL = _call({"x": "probetext"})
HARD_CALLS: dict[str, ToolCall] = {
    "calls without arguments": _call({}),
    "numbers": _call({"whole": -3, "part": 1.5, "digits": "12345"}),
    "truth values": _call({"flag": True, "digits": "true", "nothing": None}),
    "lists and objects": _call({"items": [1, "2", [], {}], "fields": {"a": {"b": "1"}, "c": [None, False]}}),
    "texts in other scripts": _call({"text": "\u00e9\u4e2d\U0001f600"}),
    "texts with line breaks, quotes or brackets": _call({"text": "a \"b\" 'c'\n{d}, <e> \\ [f]"}),
}
"""Kind of argument -> a call with some."""
SEVERAL_CALLS = (_call({"x": "a"}), _call({}, "call_probe_2"))


def format_of(written: str) -> CallFormat | None:
    """Return the first format in which a text that holds the probe call is read back equal; None if there is none."""
    return next((each for each in FORMATS.values() if reads_back(each, written, (PROBE_CALL,))), None)


def reads_back(format: CallFormat, written: str, calls: Sequence[ToolCall]) -> bool:
    """Return whether the calls that a text starts with are read back equal."""
    found = calls_in(format, written, len(calls))
    return [(each.name, canonical_json(each.arguments)) for each in found] == [
        (each.name, canonical_json(each.arguments)) for each in calls
    ]


def calls_in(format: CallFormat, written: str, count: int) -> list[Found]:
    """Return the first calls in a text, up to one that is malformed."""
    return list(islice(takewhile(lambda each: not each.problem, format.read(written, PROBE_TOOLS)), count))
