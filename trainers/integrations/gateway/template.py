"""Conversations with tools through any chat template, as text.

A template that knows tools is given them. One that does not gets them in the text of the system, calls in the text of
the assistant, and results as messages of the user. A conversation that a template refuses, because it wants roles to
alternate or the system to be first, is rendered with neighbouring messages merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from transformers import PreTrainedTokenizerBase

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.chat_template import RENDER_ERRORS, ChatTemplate
from turngym.trainers.integrations.gateway.messages import ChatMessage, ToolCall, canonical_json, digest
from turngym.trainers.integrations.gateway.refusal import wrong
from turngym.trainers.integrations.gateway.tools import INSTRUCTION, ToolFormat, written_call

Rendered: TypeAlias = Mapping[str, Any]
"""A message as chat templates take it."""
Tools: TypeAlias = Sequence[Mapping[str, Any]]
_PROBE_TOOL = "probetool"
_PROBE_TEXT = "probetext"
_PROBE_CALL = ToolCall("abcdef123", _PROBE_TOOL, canonical_json({"x": _PROBE_TEXT}))
_PROBE_TOOLS: Tools = (
    {
        "type": "function",
        "function": {
            "name": _PROBE_TOOL,
            "description": "-",
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
    },
)
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")


class ToolTemplate:
    """A tokenizer's chat template, with tools.

    Args:
        tokenizer: A tokenizer with a chat template.
        config: The template's variables, and the template itself if it is not the tokenizer's.

    Raises:
        ConfigError: The template cannot be rendered.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, config: PromptConfig) -> None:
        self.tokenizer = tokenizer
        self.plain = ChatTemplate(tokenizer, config)
        self._options: dict[str, Any] = dict(config.template)
        if config.chat_template:
            self._options["chat_template"] = config.chat_template

    @cached_property
    def format(self) -> ToolFormat:
        """The format that the template writes calls in; ``hermes`` if it knows no tools."""
        shown = self._shown_call
        if "[TOOL_CALLS]" in shown:
            return "mistral"
        if f"<function={_PROBE_TOOL}>" in shown:
            return "xml"
        return "llama" if '"parameters"' in shown.partition(_PROBE_TOOL)[2] else "hermes"

    @property
    def knows_tools(self) -> bool:
        """Whether the template shows tools, calls and results."""
        return bool(self._shown_call)

    @cached_property
    def _shown_call(self) -> str:
        """What the template writes from a call on; empty if it leaves out tools, calls or results."""
        asked = ChatMessage("user", "-")
        called = ChatMessage("assistant", "", (_PROBE_CALL,))
        result = ChatMessage("tool", _PROBE_TEXT * 2, call_id=_PROBE_CALL.id)
        try:
            listed = self._apply([as_rendered(asked)], _PROBE_TOOLS, True)
            before = self._apply([as_rendered(asked)], (), False)
            whole = self._apply([as_rendered(each) for each in (asked, called, result)], (), True)
        except RENDER_ERRORS:
            return ""
        shown = whole[len(before) :] if whole.startswith(before) else whole
        if _PROBE_TOOL not in listed or _PROBE_TEXT * 2 not in whole or _PROBE_TOOL not in shown:
            return ""
        return shown if _PROBE_TEXT in shown.partition(_PROBE_TEXT * 2)[0] else ""

    def render(self, messages: Sequence[ChatMessage], tools: Tools, goes_on: bool = True) -> str:
        """Return a conversation as text, up to the beginning of the next answer if it ``goes_on``.

        Raises:
            Refusal: The template supports no such conversation, in no form.
        """
        reason = "it is empty"
        for form in self._forms(messages, tools):
            try:
                return self._apply(*form, goes_on)
            except RENDER_ERRORS as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise wrong(f"the model's chat template cannot show these messages ({reason}).")

    def _forms(self, messages: Sequence[ChatMessage], tools: Tools) -> Iterator[tuple[list[Rendered], Tools]]:
        has_calls = any(message.calls or message.role == "tool" for message in messages)
        if self.knows_tools or not (tools or has_calls):
            yield [self._with_content(as_rendered(message)) for message in messages], tools
        plain = without_tools(messages, tools)
        yield [self._with_content(as_rendered(message)) for message in plain], ()
        shows_system = any(message.role == "system" for message in plain) and self.plain.has_system
        merged = alternating(plain, shows_system)
        yield [self._with_content(as_rendered(message)) for message in merged], ()

    def _with_content(self, message: dict[str, Any]) -> Rendered:
        return {**message, "content": self.plain.content(message["content"])}

    def _apply(self, messages: Sequence[Rendered], tools: Tools, goes_on: bool) -> str:
        text = self.tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            tools=[dict(tool) for tool in tools] or None,
            tokenize=False,
            add_generation_prompt=goes_on,
            **self._options,
        )
        return str(text)


def as_rendered(message: ChatMessage) -> dict[str, Any]:
    """Return a message as chat templates take it."""
    found: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning:
        found["reasoning_content"] = message.reasoning
    if message.calls:
        found["tool_calls"] = [
            {"id": short_id(call.id), "type": "function", "function": {"name": call.name, "arguments": call.decoded}}
            for call in message.calls
        ]
    if message.role == "tool":
        found["tool_call_id"] = short_id(message.call_id)
    return found


def short_id(name: str) -> str:
    """Return an id of nine letters and digits; some templates refuse others."""
    return name if _MISTRAL_ID.fullmatch(name) else digest(name)[:9]


def without_tools(messages: Sequence[ChatMessage], tools: Tools) -> list[ChatMessage]:
    """Return a conversation with tools, calls and results as texts."""
    found = [_as_text(message) for message in messages]
    if not tools:
        return found
    listed = "\n".join(json.dumps(dict(tool), ensure_ascii=False) for tool in tools)
    told = INSTRUCTION.format(tools=listed)
    if found and found[0].role == "system":
        return [ChatMessage("system", f"{found[0].text}\n\n{told}"), *found[1:]]
    return [ChatMessage("system", told), *found]


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.role == "tool":
        return ChatMessage("user", f"<tool_response>\n{message.text}\n</tool_response>")
    if message.calls:
        parts = [message.text] * bool(message.text) + [written_call(call) for call in message.calls]
        return ChatMessage("assistant", "\n".join(parts), reasoning=message.reasoning)
    return message


def alternating(messages: Sequence[ChatMessage], has_system: bool) -> list[ChatMessage]:
    """Return a conversation whose roles alternate, beginning with the user behind at most one text of the system."""
    found: list[ChatMessage] = []
    for place, message in enumerate(messages):
        is_first_system = message.role == "system" and not place and has_system
        role = message.role if message.role == "assistant" or is_first_system else "user"
        if found and found[-1].role == role:
            found[-1] = ChatMessage(role, f"{found[-1].text}\n\n{message.text}")
        else:
            found.append(ChatMessage(role, message.text, reasoning=message.reasoning))
    first = bool(found) and found[0].role == "system"
    if len(found) > first and found[first].role == "assistant":
        found.insert(first, ChatMessage("user", "-"))
    return found
