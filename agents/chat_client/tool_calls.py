"""Native tool calls of models behind a server: reading them, and the messages around them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turngym.envs.tools.tool_schema import ToolSet, write_call
from turngym.text import valid_text

_MOST_CALLS = 32


class ToolCall(NamedTuple):
    """A call in an answer.

    Args:
        id: Its id, which the message with the result repeats.
        name: Name of the tool.
        arguments: Arguments as the model wrote them; JSON if it made no mistake.
    """

    id: str
    name: str
    arguments: str

    @property
    def action(self) -> str:
        """The call as an action; wrong arguments are kept, so that the environment answers them."""
        try:
            return valid_text(write_call(self.name, json.loads(self.arguments)))
        except (ValueError, RecursionError):
            return valid_text(write_call(self.name, self.arguments))

    @property
    def message(self) -> dict[str, Any]:
        """The call in a later prompt; arguments that are not an object are left out, as chat templates parse them."""
        try:
            is_object = isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            is_object = False
        arguments = self.arguments if is_object else "{}"
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


def read_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the first calls in a message of a model; entries that are not calls are skipped.

    >>> read_calls({"tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}, None]})
    (ToolCall(id='1', name='look', arguments='{}'),)
    """
    found = []
    entries = message.get("tool_calls")
    for number, entry in enumerate(entries[:_MOST_CALLS] if isinstance(entries, list) else ()):
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            given = function.get("arguments") or "{}"
            try:
                text = given if isinstance(given, str) else json.dumps(given)
            except RecursionError:  # nested as deeply as could just be read
                continue
            found.append(ToolCall(str(entry.get("id") or f"call_{number}"), function["name"], text))
    return tuple(found)


def tool_fields(tools: ToolSet) -> dict[str, Any]:
    """Return the fields of a request that declare tools."""
    return {"tools": [{"type": "function", "function": dict(each)} for each in tools.tools]}


def paired(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a shortened conversation without calls that lost their results, and results that lost their calls.

    >>> paired([{"role": "tool", "tool_call_id": "1", "content": "a door"}])
    [{'role': 'user', 'content': 'a door'}]
    """
    found: list[dict[str, Any]] = []
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool" and message["tool_call_id"] not in waiting:
            message = {"role": "user", "content": message["content"]}
        elif message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
        elif calls := message.get("tool_calls"):
            ids = [call["id"] for call in calls]
            results = [each.get("tool_call_id") for each in messages[place + 1 : place + 1 + len(ids)]]
            waiting = set(ids) if results == ids else set()
            if not waiting:
                message = {"role": "assistant", "content": message["content"] or "(calls left out)"}
        found.append(message)
    return found
