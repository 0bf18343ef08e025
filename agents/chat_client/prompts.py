"""Prompts for a model behind a server: messages, shortened by an estimate of their tokens if enabled."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from turngym.agents.chat import Message as ChatMessage
from turngym.agents.chat import guessed_tokens
from turngym.agents.chat_client.tool_calls import ToolCall, paired
from turngym.agents.core import Request
from turngym.agents.prompt_text import Fit, PromptConfig, remembered_text, shown_text, system_text, window_text
from turngym.agents.prompting.fitting import Gap, gap_for, note_of, with_note
from turngym.envs.png import png
from turngym.envs.tools.tool_schema import ToolSet
from turngym.text import valid_text, without_control_tokens
from turngym.wrappers.actions.action_format import ActionFormat

Message: TypeAlias = dict[str, Any]
"""A message as servers take it."""
_KEPT = 0.75
"""Share of a refused prompt that the next one may have."""


class _Past(NamedTuple):
    """An earlier turn: what was seen and said as text and, in conversations, as messages with their size."""

    observation: str
    answer: str
    action: str
    messages: tuple[Message, ...] = ()
    tokens: int = 0


@dataclass
class _Memory:
    """The earlier turns of an episode, and the message that is being answered."""

    turns: list[_Past] = field(default_factory=list)
    asked: list[Message] = field(default_factory=list)
    left_out: int = 0
    called: str = ""
    pending: list[ToolCall] = field(default_factory=list)


class ServerPrompts:
    """Builds messages, and keeps the memory that they are built from.

    Args:
        config: Prompt settings; with ``fit=auto``, turns are dropped only after the server rejected a prompt, and never
            the first one.
        format_of: Returns the action format of a request, whose sentence is appended to the rules.
        escape: Whether control tokens in observations are escaped.
        native: Returns the tools that a request declares to the server.
    """

    def __init__(
        self,
        config: PromptConfig,
        format_of: Callable[[Request], ActionFormat],
        escape: bool,
        native: Callable[[Request], ToolSet | None] = lambda request: None,
    ) -> None:
        self.native = native
        self.config = config
        self.format_of = format_of
        self.escape = escape
        self.memories: dict[int, _Memory] = {}
        self.fit: Fit = "drop_middle" if config.fit == "auto" else config.fit
        self.limit = config.max_prompt_tokens if config.is_shortened else sys.maxsize
        """Guessed tokens of the longest prompt; lowered where the server refuses a shorter one."""

    def messages(self, request: Request) -> list[Message]:
        """Return the messages that ``request`` is answered from, images included."""
        memory = self.memories.setdefault(request.episode, _Memory())
        shown = shown_text(self.config, request.observation, request.info)
        memory.asked = self._asked(memory, shown, request)
        native = self.native(request)
        rules = request.instructions if native is None else native.instructions
        text = system_text(self.config, rules, "" if native else self.format_of(request).sentence)
        system = [{"role": "system", "content": text}] if text else []
        is_window = self.config.mode == "window"
        turns = memory.turns[-self.config.history :] if is_window and self.config.history else memory.turns
        turns = [] if is_window and not self.config.history else turns

        def built(gap: Gap) -> list[Message]:
            memory.left_out = gap.size
            if is_window:
                return [*system, self._window(turns, gap, shown, request)]
            found = [*system, *self._conversation(turns, gap, memory.asked)]
            return paired(found) if native and gap.size else found

        if self.limit == sys.maxsize:
            return built(Gap())
        fixed = _tokens(system) + _tokens(memory.asked)
        sizes = accumulate(turn.tokens for turn in reversed(turns))
        kept = sum(fixed + size <= self.limit for size in sizes)
        while True:
            found = built(gap_for(self.fit, len(turns), kept) if kept < len(turns) else Gap())
            if not kept or _tokens(found) <= self.limit:
                return found
            kept -= 1

    def shortened(self, request: Request, refused: list[Message]) -> list[Message] | None:
        """Return a shorter prompt than one that the server refused; None if nothing else may be left out."""
        if self.fit == "none":
            return None
        size = _tokens(refused)
        self.refuse(size)
        found = self.messages(request)
        return found if _tokens(found) < size else None

    def refuse(self, size: int) -> None:
        """Lower the limit below the size of a prompt that the server refused."""
        self.limit = min(self.limit, int(_KEPT * size))

    def leaves_out(self, episode: int) -> bool:
        """Return whether the last prompt of an episode left earlier turns out."""
        return episode in self.memories and self.memories[episode].left_out > 0

    def pending(self, request: Request) -> ToolCall | None:
        """Return the next call of an answer with several, after noting the result of the one before."""
        memory = self.memories.get(request.episode)
        if memory is None or not memory.pending:
            return None
        call = memory.pending.pop(0)
        asked = self._asked(memory, shown_text(self.config, request.observation, request.info), request)[:1]
        past = _Past(request.observation, call.action, call.action, tuple(asked), _tokens(asked))
        if self.config.mode == "conversation":
            memory.turns.append(past)
        elif self.config.history:
            memory.turns = [*memory.turns, past][-self.config.history :]
        memory.called = call.id
        return call

    def _asked(self, memory: _Memory, shown: str, request: Request) -> list[Message]:
        """Return the messages of an observation: the result of a call, its picture in a message of the user."""
        user = self._user(shown, request)
        if not memory.called or self.config.mode != "conversation":
            return [user]
        text, picture = _text(user), user["content"][1:] if request.image is not None else []
        result = {"role": "tool", "tool_call_id": memory.called, "content": text}
        said = {"type": "text", "text": "The picture after the last call:"}
        return [result, {"role": "user", "content": [said, *picture]}] if picture else [result]

    def remember(self, request: Request, completion: str, action: str, calls: Sequence[ToolCall] = ()) -> None:
        """Note the answer to a request."""
        memory = self.memories.setdefault(request.episode, _Memory())
        said = remembered_text(self.config, action, completion, self.format_of(request).regions)
        past = _Past(request.observation, said, action)
        if self.config.mode == "conversation":
            answer: Message = {"role": "assistant", "content": said}
            if calls:
                answer["tool_calls"] = [call.message for call in calls]
            messages = (*memory.asked, answer)
            memory.turns.append(past._replace(messages=messages, tokens=_tokens(list(messages))))
        elif self.config.history:
            memory.turns = [*memory.turns, past][-self.config.history :]

        memory.called, memory.pending = (calls[0].id, list(calls[1:])) if calls else ("", [])

    def forget(self, episode: int) -> None:
        """Forget an episode."""
        self.memories.pop(episode, None)

    def _note(self, turns: list[_Past], gap: Gap) -> str:
        left_out = [turn.action for turn in turns[gap.start : gap.stop]]
        return note_of(self.fit, left_out, gap.start == 0) if left_out else ""

    def _window(self, turns: list[_Past], gap: Gap, shown: str, request: Request) -> Message:
        recent = [(turn.observation, turn.answer) for turn in (*turns[: gap.start], *turns[gap.stop :])]
        return self._user(window_text(recent, shown, self._note(turns, gap), gap.start), request)

    def _conversation(self, turns: list[_Past], gap: Gap, asked: list[Message]) -> list[Message]:
        before = [message for turn in turns[: gap.start] for message in turn.messages]
        after = [message for turn in turns[gap.stop :] for message in turn.messages] + asked
        return [*before, _noted(self._note(turns, gap), after[0]), *after[1:]]

    def _user(self, text: str, request: Request) -> Message:
        return as_json(ChatMessage("user", text, request.image), self.escape)


def as_json(message: ChatMessage, escape: bool) -> Message:
    """Return a message as servers take it.

    Args:
        message: The message.
        escape: Whether control tokens in it are escaped, if it is a user message.
    """
    text = valid_text(message.text)
    if escape and message.role == "user":
        text = without_control_tokens(text)
    if message.image is None:
        return {"role": message.role, "content": text}
    data = base64.b64encode(png(message.image)).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return {"role": message.role, "content": [{"type": "text", "text": text}, picture]}


def _text(message: Message) -> str:
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def _noted(note: str, message: Message) -> Message:
    if not note:
        return message
    text, content = with_note(note, _text(message)), message["content"]
    return {**message, "content": text if isinstance(content, str) else [{**content[0], "text": text}, *content[1:]]}


def _tokens(messages: list[Message]) -> int:
    return guessed_tokens([ChatMessage(message["role"], _text(message)) for message in messages])
