"""Conversations with tools through any chat template, as text.

A template that writes calls in a form that can be read back is given tools, calls and results. One that does not gets
the tools in the text of the system, calls in the text of the assistant, and results as messages of the user. A
conversation that a template refuses, because it wants roles to alternate or one call at a time, is rendered in a form
that it takes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from transformers import PreTrainedTokenizerBase

from turngym.agents.gateway.conversations.call_formats import HERMES, CallFormat, Tools
from turngym.agents.gateway.conversations.forms import alternating, as_text, one_call_each, with_tools
from turngym.agents.gateway.conversations.messages import ChatMessage, ToolCall, digest
from turngym.agents.gateway.conversations.probing import (
    ASKED,
    HARD_CALLS,
    PROBE_CALL,
    PROBE_TOOLS,
    RESULT,
    SEVERAL_CALLS,
    TOOL,
    calls_in,
    format_of,
    reads_back,
)
from turngym.agents.gateway.conversations.tools import HERMES_CALL
from turngym.agents.gateway.offload import check_time
from turngym.agents.gateway.refusal import wrong
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.chat_template import RENDER_ERRORS, ChatTemplate, shared
from turngym.errors import PromptWarning

_Rendered: TypeAlias = Mapping[str, Any]
"""A message as chat templates take it."""
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_NUMBERED_ID = re.compile(r"functions\..+:\d+")
_Ids: TypeAlias = Literal["given", "short", "numbered"]
_WAY_OUT = "pass another template with chat_template=FILE."


@dataclass(frozen=True)
class _Habits:
    """Format in which a template receives calls.

    Args:
        as_text: Whether arguments are JSON texts.
        ids: Ids of calls: as they are, of nine letters and digits, or ``functions.NAME:NUMBER``.
    """

    as_text: bool = False
    ids: _Ids = "given"


_HABITS = [_Habits(as_text, ids) for as_text in (False, True) for ids in get_args(_Ids)]


class ToolTemplate:
    """A tokenizer's chat template, with tools. Warns if calls that it writes cannot be read back.

    Args:
        tokenizer: A tokenizer with a chat template.
        config: The template's variables, and the template itself if it is not the tokenizer's.

    Raises:
        ConfigError: The template cannot be rendered.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, config: PromptConfig) -> None:
        self.plain = ChatTemplate(tokenizer, config)
        self._habits = _Habits()
        assert self.plain.thinking  # rendered at the start: a template that takes too long for it is refused here
        self.lists_tools = self._lists_tools()
        self._reason = ""
        found = self._find_format()
        self.knows_tools = found is not None
        """True if the template writes calls that can be read back, and results."""
        self.format: CallFormat = found or HERMES
        """The format that the template writes calls in; ``hermes`` if it writes none that can be read."""
        self._warn()

    def _lists_tools(self) -> bool:
        try:
            return TOOL in self._apply([ASKED], PROBE_TOOLS, True)
        except RENDER_ERRORS:
            return False

    def _find_format(self) -> CallFormat | None:
        """Return the first format in which a call that the template writes is read back equal."""
        for self._habits in _HABITS:
            try:
                written, whole = self.written_calls((PROBE_CALL,))
            except RENDER_ERRORS as error:
                self._reason = self._reason or f"{type(error).__name__}: {str(error)[:120]}"
                continue
            if TOOL not in written:
                continue
            if RESULT not in whole:
                self._reason = "it leaves out the results of tools"
            elif (found := format_of(written)) is not None:
                return found
            else:
                self._reason = f"it writes calls in a form that is not known: {written[:120]!r}"
        self._habits = _HABITS[0]
        return None

    def written_calls(self, calls: tuple[ToolCall, ...]) -> tuple[str, str]:
        """Return what the template writes after a prompt that is answered with calls and their results, and it all."""
        called = ChatMessage("assistant", "", calls)
        results = [ChatMessage("tool", RESULT, call_id=call.id) for call in calls]
        before = self._apply([ASKED], (), True)
        whole = self._apply([ASKED, called, *results], (), True)
        return whole[shared(before, whole) :], whole

    def _warn(self) -> None:
        """Say what the start has found about calls that models of this template could not use."""
        said = ""
        if not self.knows_tools and (self.lists_tools or self._is_about_calls):
            why = self._reason or "it leaves out calls"
            said = (
                f"cannot be used for calls of tools ({why}): tools are described in the text of the system, and calls "
            )
            said += f"are written as <tool_call>JSON</tool_call>. For the model's own form, {_WAY_OUT}"
        elif self.knows_tools and not self.lists_tools:
            said = (
                f"writes calls (format {self.format.name}) and lists no tools: they are described in the text of the "
            )
            said += f"system. For the model's own form, {_WAY_OUT}"
        elif self.knows_tools and (lost := self._lost_arguments):
            said = f"writes {lost} so that they cannot be read back (format {self.format.name}): histories with them "
            said += f"are not exact. To avoid it, {_WAY_OUT}"
        if said:
            warnings.warn(f"the chat template {said}", PromptWarning, stacklevel=3)

    @property
    def _is_about_calls(self) -> bool:
        return "tool_call" in self.plain.source

    @cached_property
    def _lost_arguments(self) -> str:
        """Kinds of arguments that the template does not write in a form that can be read back."""
        return ", ".join(kind for kind, call in HARD_CALLS.items() if not self._reads_back((call,)))

    @cached_property
    def shows_one_call(self) -> bool:
        """True if each call has to be its own message."""
        return not self._reads_back(SEVERAL_CALLS)

    def _reads_back(self, calls: tuple[ToolCall, ...]) -> bool:
        try:
            written, _ = self.written_calls(calls)
        except RENDER_ERRORS:
            return False
        return reads_back(self.format, written, calls)

    def render(self, messages: Sequence[ChatMessage], tools: Tools, goes_on: bool = True) -> str:
        """Return a conversation as text, up to the start of the next answer if it ``goes_on``.

        Raises:
            Refusal: The template supports no such conversation, in no form.
        """
        reason = "it is empty"
        for given, listed in self._forms(messages, tools):
            try:
                return self._apply(given, listed, goes_on)
            except RENDER_ERRORS as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise wrong(f"the model's chat template cannot show these messages ({reason}).")

    def exactly(self, messages: Sequence[ChatMessage]) -> str:
        """Return a conversation as the template itself writes it.

        Raises:
            Refusal: It does not.
        """
        try:
            return self._apply(messages, (), True)
        except RENDER_ERRORS as error:
            raise wrong(f"the model's chat template cannot show these messages ({type(error).__name__}).") from error

    def _forms(self, messages: Sequence[ChatMessage], tools: Tools) -> Iterator[tuple[Sequence[ChatMessage], Tools]]:
        has_calls = any(message.calls or message.role == "tool" for message in messages)
        if self.knows_tools or not (tools or has_calls):
            listed = tools if self.lists_tools else ()
            given = list(messages) if listed or not tools else with_tools(messages, tools, self._taught)
            several = any(len(message.calls) > 1 for message in given)
            yield one_call_each(given) if several and self.shows_one_call else given, listed
        texts = [as_text(message) for message in messages]
        plain = with_tools(texts, tools, HERMES_CALL) if tools else texts
        yield plain, ()
        shows_system = any(message.role == "system" for message in plain) and self.plain.has_system
        yield alternating(plain, shows_system), ()

    @cached_property
    def _taught(self) -> str:
        """Format of a call for a template that writes calls and lists no tools."""
        written, _ = self.written_calls((ToolCall(PROBE_CALL.id, "NAME", '{"ARGUMENT": "VALUE"}'),))
        found = calls_in(self.format, written, 1)[0]
        return f"it in this form:\n{written[found.start : found.end]}"

    def _shown(self, messages: Sequence[ChatMessage]) -> list[_Rendered]:
        """Return messages as chat templates take them."""
        ids = self._ids(messages)
        return [self._message(message, ids) for message in messages]

    def _message(self, message: ChatMessage, ids: Mapping[str, str]) -> _Rendered:
        found: dict[str, Any] = {"role": message.role, "content": self.plain.content(message.text)}
        if message.reasoning:
            found["reasoning_content"] = message.reasoning
        if message.calls:
            found["tool_calls"] = [
                {
                    "id": ids[call.id],
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.arguments or "{}" if self._habits.as_text else call.decoded,
                    },
                }
                for call in message.calls
            ]
        if message.role == "tool":
            found["tool_call_id"] = ids[message.call_id]
        return found

    def _ids(self, messages: Sequence[ChatMessage]) -> dict[str, str]:
        """Return for each id of a call the one that the template is given."""
        calls = [(call.id, call.name) for message in messages for call in message.calls]
        calls += [(message.call_id, "tool") for message in messages if message.role == "tool"]
        found: dict[str, str] = {}
        for id, name in calls:
            if id in found:
                continue
            if self._habits.ids == "short":
                found[id] = _short_id(id)
            elif self._habits.ids == "numbered" and not _NUMBERED_ID.fullmatch(id):
                found[id] = f"functions.{name}:{len(found)}"
            else:
                found[id] = id
        return found

    def _apply(self, messages: Sequence[ChatMessage], tools: Tools, goes_on: bool) -> str:
        check_time()
        return self.plain.apply(self._shown(messages), goes_on, tools)


def _short_id(name: str) -> str:
    """Return an id of nine letters and digits; some templates refuse others."""
    return name if _MISTRAL_ID.fullmatch(name) else digest(name)[:9]
