"""Conversations in one form, whatever protocol they came in, and the hash that they are compared by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from turngym.agents.gateway.refusal import Dialect
from turngym.text import valid_text

_DEEPEST = 100
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Args:
        id: Its id.
        name: The tool.
        arguments: Its arguments as JSON with sorted keys; as they are if they are not JSON.
    """

    id: str
    name: str
    arguments: str

    @property
    def decoded(self) -> Any:
        """The arguments as data; the text itself if it is not JSON."""
        found = _loaded(self.arguments or "{}")
        return self.arguments if found is None else found


def canonical_json(arguments: Any) -> str:
    """Return arguments, data or the text of some, with sorted keys; a text that is no JSON stays as it is.

    >>> canonical_json('{"b": 1, "a":2}'), canonical_json("{broken")
    ('{"a": 2, "b": 1}', '{broken')
    """
    if isinstance(arguments, str):
        found = _loaded(arguments)
        if found is None:
            return arguments
        arguments = found
    return valid_text(json.dumps(arguments, sort_keys=True, ensure_ascii=False))


def _loaded(text: str) -> Any:
    """Return JSON as data; None if it is none, or nested so deep that it cannot be written again."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_deeper(found, _DEEPEST) else found


def is_deeper(found: Any, most: int) -> bool:
    """Return whether objects and lists are nested deeper than so many levels."""
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(most):
        parts = [each.values() if type(each) is dict else each for each in level]
        level = [value for part in parts for value in part if type(value) is dict or type(value) is list]
        if not level:
            return False
    return bool(level)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    Args:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        text: Its text; text parts are joined, and null is empty.
        calls: Tools that the assistant called.
        call_id: Id of the call that a tool's message answers.
        reasoning: Reasoning that a client sent apart from the text.
    """

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    reasoning: str = ""

    @property
    def size(self) -> int:
        """Number of characters."""
        calls = sum(len(call.id) + len(call.name) + len(call.arguments) for call in self.calls)
        return len(self.text) + len(self.reasoning) + len(self.call_id) + calls

    def chained(self, before: str) -> str:
        """Return the hash of a conversation, given that of the messages before this one.

        Two messages have the same hash if role, text, reasoning and calls are equal, in whatever way they were written
        down. Blanks around what the assistant said do not count: clients strip them.
        """
        said = (self.text.strip(), self.reasoning.strip()) if self.role == "assistant" else (self.text, self.reasoning)
        calls = [[call.id, call.name, call.arguments] for call in self.calls]
        return digest([before, self.role, said[0], calls, self.call_id, said[1]])


def digest(content: Any) -> str:
    """Return a hash of JSON-compatible data."""
    text = _ENCODER.encode(content)
    return hashlib.blake2b(text.encode("utf8", "surrogatepass"), digest_size=16).hexdigest()


def chain(start: str, messages: Iterable[ChatMessage]) -> list[str]:
    """Return the hash of each start of a conversation, the empty one included."""
    found = [start]
    for message in messages:
        found.append(message.chained(found[-1]))
    return found


@dataclass(frozen=True)
class CallRequest:
    """A request for answers, whatever protocol it came in.

    Args:
        dialect: The protocol.
        model: Name of the model that was asked for.
        messages: The conversation.
        tools: Tools in the format of chat templates: ``{"type": "function", "function": {...}}``.
        reads_calls: Whether calls in the answer are read; False with tool_choice none.
        prompt: Text or tokens to continue instead of a conversation.
        prefill: Whether the last message is the start of the answer.
        choices: Number of answers.
        stop: Words that end an answer.
        seed: Seed of the client.
        max_tokens: Longest answer; None for the longest that is allowed.
        temperature: Request of the client.
        top_p: The same.
        logprobs: Whether log-probabilities are returned.
        json_mode: ``""``, ``object``, or the JSON schema that the answer is to follow.
        stream: Whether the answer is streamed.
        stream_usage: Whether a stream ends with the numbers of tokens.
        echo: Whether a completion repeats its prompt.
        retry: The client's count of retries.
        previous: Id of the answer that the messages follow.
        extra: Fields of the request that the answer repeats.
    """

    dialect: Dialect
    model: str = ""
    messages: tuple[ChatMessage, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    reads_calls: bool = True
    prompt: str | tuple[int, ...] | None = None
    prefill: bool = False
    choices: int = 1
    stop: tuple[str, ...] = ()
    seed: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    logprobs: bool = False
    json_mode: str = ""
    stream: bool = False
    stream_usage: bool = False
    echo: bool = False
    retry: int = 0
    previous: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """Hash of what comes before the messages: tools and JSON mode."""
        return digest([list(map(dict, self.tools)), self.json_mode])

    @cached_property
    def keys(self) -> list[str]:
        """Hash of each start of the conversation, the empty one included."""
        return chain(self.start, self.messages)

    @cached_property
    def body_key(self) -> str:
        """Hash that identical requests share."""
        prompt = list(self.prompt) if isinstance(self.prompt, tuple) else self.prompt
        sampling = [self.choices, self.stop, self.seed, self.max_tokens, self.temperature, self.top_p]
        begun = self.messages[-1].text if self.prefill else ""
        how = [self.previous, prompt, begun, self.prefill, self.reads_calls, *sampling]
        return digest([self.dialect, self.keys[-1], *how])
