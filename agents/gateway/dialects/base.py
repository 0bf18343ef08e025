"""Base of the API dialects."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngym.agents.gateway.body import Fields, objects
from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest
from turngym.agents.gateway.conversations.rendering import Renderer
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Body, Dialect, wrong

_LONGEST_STOP = 16
_TEXT_PARTS = ("text", "input_text", "output_text", "summary_text")


@dataclass(frozen=True)
class Writing:
    """Format of answers.

    Args:
        request: The request.
        model: Name of the model.
        renderer: Decodes tokens.
    """

    request: CallRequest
    model: str
    renderer: Renderer

    @property
    def now(self) -> int:
        """Seconds since 1970."""
        return int(time.time())


class Event(bytes):
    """One event of a stream, as it is sent."""

    @classmethod
    def of(cls, data: Body | str, name: str = "") -> Event:
        r"""Return an event.

        >>> Event.of("[DONE]")
        b'data: [DONE]\n\n'
        """
        text = data if isinstance(data, str) else json.dumps(data)
        return cls((f"event: {name}\n" * bool(name) + f"data: {text}\n\n").encode())


class Stream(ABC):
    """The events of one streamed answer.

    Args:
        writing: Format of the answer.
        id: Id of the answer, the same as in the log.
    """

    def __init__(self, writing: Writing, id: str) -> None:
        self.writing = writing
        self.id = id

    @abstractmethod
    def start(self) -> Iterator[Event]:
        """Yield what comes before any text."""

    @abstractmethod
    def text(self, choice: int, delta: str) -> Iterator[Event]:
        """Yield the events of more text."""

    @abstractmethod
    def end(self, calls: Sequence[SampledCall]) -> Iterator[Event]:
        """Yield the tool calls, the reasons to end, and the numbers of tokens; all text has been sent."""


class Protocol(ABC):
    """One endpoint."""

    dialect: Dialect

    @abstractmethod
    def read(self, body: Body, limits: GatewayLimits) -> CallRequest:
        """Return the request of a body.

        Raises:
            Refusal: It is not understood, or asks for what is not served.
        """

    @abstractmethod
    def write(self, writing: Writing, calls: Sequence[SampledCall]) -> Body:
        """Return the answer."""

    @abstractmethod
    def stream(self, writing: Writing, id: str) -> Stream:
        """Return the events of the answer."""


def text_of_content(content: Any, name: str) -> str:
    """Return the text of a content: itself, or its text parts joined; null is empty.

    Raises:
        Refusal: It has other parts.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(f"{name} must be a string or a list of parts.")
    found = []
    for part in objects(content, name):
        kind = part.get("type", "text")
        if kind == "refusal":
            found.append(Fields(part).text("refusal"))
        elif kind in _TEXT_PARTS:
            found.append(Fields(part).text("text"))
        else:
            raise wrong(f"{name} has a part of type {str(kind)[:50]!r}; only text is served.")
    return "".join(found)


def stop_words(fields: Fields, name: str = "stop") -> tuple[str, ...]:
    """Return the stop words of a request: a text or a list of at most 16, empty ones left out."""
    value = fields.body.get(name)
    words = [value] if isinstance(value, str) else fields.items(name)
    if len(words) > _LONGEST_STOP or not all(isinstance(word, str) and len(word) <= 1000 for word in words):
        raise wrong(
            f"{name} must be a string or a list of at most {_LONGEST_STOP} strings of at most 1,000 characters."
        )
    return tuple(word for word in words if word)


def function_tool(name: Any, description: Any, parameters: Any) -> Mapping[str, Any]:
    """Return a tool in the format of chat templates.

    Raises:
        Refusal: It has no name.
    """
    if not isinstance(name, str) or not name:
        raise wrong("a tool must have a name.")
    if not isinstance(parameters, dict | None) or not isinstance(description, str | None):
        raise wrong(f"the tool {name[:50]!r} must have a string as description and an object as parameters.")
    function = {"name": name, "description": description or "", "parameters": parameters or {"type": "object"}}
    return {"type": "function", "function": function}


def json_mode(format: Any) -> str:
    """Return the JSON mode of a ``response_format`` or of the format of a text."""
    if not isinstance(format, dict):
        return ""
    kind = format.get("type")
    if kind in (None, "text"):
        return ""
    if kind == "json_object":
        return "object"
    if kind == "json_schema":
        holder = format.get("json_schema", format)
        schema = holder.get("schema", {}) if isinstance(holder, dict) else {}
        return json.dumps(schema, sort_keys=True) if schema else "object"
    raise wrong(f"the response format {str(kind)[:50]!r} is not served; text, json_object and json_schema are.")


def openai_usage(calls: Sequence[SampledCall]) -> Body:
    """Return the numbers of tokens as chat completions give them."""
    read = len(calls[0].prompt_ids) if calls else 0
    written = sum(len(call.completion_ids) for call in calls)
    kept = {"cached_tokens": calls[0].kept if calls else 0}
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": kept,
    }


def finish_reason(call: SampledCall) -> str:
    """Return why an answer ended, in the words of chat completions."""
    if call.message.calls:
        return "tool_calls"
    return "length" if call.stop == "length" else "stop"


def token_logprobs(call: SampledCall, renderer: Renderer) -> list[Body]:
    """Return the log-probability of each sampled token; no other candidates are known."""
    found = []
    for token, logprob in zip(call.completion_ids, call.logprobs, strict=True):
        text = renderer.decoded([token])
        about = {"token": text, "logprob": max(logprob, -9999.0), "bytes": list(text.encode())}
        found.append({**about, "top_logprobs": [about]})
    return found
