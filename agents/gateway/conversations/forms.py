"""Conversations in other forms, for chat templates that do not take them as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from turngym.agents.gateway.conversations.call_formats import Tools
from turngym.agents.gateway.conversations.messages import ChatMessage
from turngym.agents.gateway.conversations.tools import INSTRUCTION, written_call


def with_tools(messages: Sequence[ChatMessage], tools: Tools, how: str) -> list[ChatMessage]:
    """Return a conversation whose system text lists the tools and says how they are called."""
    listed = "\n".join(json.dumps(dict(tool), ensure_ascii=False) for tool in tools)
    told = INSTRUCTION.format(tools=listed, how=how)
    if messages and messages[0].role == "system":
        return [ChatMessage("system", f"{messages[0].text}\n\n{told}"), *messages[1:]]
    return [ChatMessage("system", told), *messages]


def one_call_each(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a conversation in which each call is its own message, followed by its result."""
    found: list[ChatMessage] = []
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        if len(message.calls) < 2:
            found.append(message)
            continue
        for place, call in enumerate(message.calls):
            text, reasoning = ("", "") if place else (message.text, message.reasoning)
            found.append(ChatMessage("assistant", text, (call,), reasoning=reasoning))
            answers = [each for each in rest if each.role == "tool" and each.call_id == call.id][:1]
            found += answers
            rest = [each for each in rest if not any(each is answer for answer in answers)]
    return found


def as_text(message: ChatMessage) -> ChatMessage:
    """Return a message with its calls or its result as text."""
    if message.role == "tool":
        return ChatMessage("user", f"<tool_response>\n{message.text}\n</tool_response>")
    if message.calls:
        parts = [message.text] * bool(message.text) + [written_call(call) for call in message.calls]
        return ChatMessage("assistant", "\n".join(parts), reasoning=message.reasoning)
    return message


def alternating(messages: Sequence[ChatMessage], has_system: bool) -> list[ChatMessage]:
    """Return a conversation whose roles alternate, beginning with the user behind at most one text of the system."""
    roles = [
        message.role
        if message.role == "assistant" or (message.role == "system" and not place and has_system)
        else "user"
        for place, message in enumerate(messages)
    ]
    found: list[ChatMessage] = []
    for role, run in groupby(zip(roles, messages, strict=True), key=itemgetter(0)):
        merged = [message for _, message in run]
        reasoning = merged[0].reasoning if len(merged) == 1 else ""
        found.append(ChatMessage(role, "\n\n".join(message.text for message in merged), reasoning=reasoning))
    first = bool(found) and found[0].role == "system"
    if len(found) > first and found[first].role == "assistant":
        found.insert(first, ChatMessage("user", "-"))
    return found
