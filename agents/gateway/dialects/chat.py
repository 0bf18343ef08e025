"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turngym.agents.gateway.body import Fields, objects
from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest, ChatMessage, ToolCall, canonical_json
from turngym.agents.gateway.dialects.base import (
    Event,
    Protocol,
    Stream,
    Writing,
    finish_reason,
    function_tool,
    json_mode,
    openai_usage,
    stop_words,
    text_of_content,
    token_logprobs,
)
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Body, wrong

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class ChatProtocol(Protocol):
    """``/v1/chat/completions``."""

    dialect = "chat"

    def read(self, body: Body, limits: GatewayLimits) -> CallRequest:
        """Return the request."""
        fields = Fields(body)
        longest = fields.integer("max_completion_tokens", 1) or fields.integer("max_tokens", 1)
        messages = tuple(map(_message, objects(fields.items("messages"), "messages")))
        if not messages:
            raise wrong("messages must be a list of at least one message.")
        return CallRequest(
            dialect="chat",
            model=fields.text("model"),
            messages=messages,
            tools=tuple(_tool(tool) for tool in objects(fields.items("tools"), "tools")),
            reads_calls=body.get("tool_choice") != "none",
            choices=fields.integer("n", 1, limits.max_choices) or 1,
            stop=stop_words(fields),
            seed=fields.integer("seed", -(2**63)),
            max_tokens=longest,
            temperature=fields.number("temperature", 0, 10),
            top_p=fields.number("top_p", 1e-9, 1),
            logprobs=fields.flag("logprobs"),
            json_mode=json_mode(body.get("response_format")),
            stream=fields.flag("stream"),
            stream_usage=Fields(fields.object("stream_options")).flag("include_usage"),
        )

    def write(self, writing: Writing, calls: Sequence[SampledCall]) -> Body:
        """Return the answer."""
        return {
            "id": calls[0].id,
            "object": "chat.completion",
            "created": writing.now,
            "model": writing.model,
            "choices": [_choice(writing, call) for call in calls],
            "usage": openai_usage(calls),
        }

    def stream(self, writing: Writing, id: str) -> Stream:
        """Return the events."""
        return _ChatStream(writing, id)


def _message(raw: Body) -> ChatMessage:
    fields = Fields(raw)
    role = _ROLES.get(fields.text("role"))
    if role is None:
        raise wrong(f"a message has the role {str(raw.get('role'))[:50]!r}; {', '.join(_ROLES)} are served.")
    calls = tuple(_call(each) for each in objects(fields.items("tool_calls"), "tool_calls"))
    return ChatMessage(
        role,
        text_of_content(raw.get("content"), "content"),
        calls if role == "assistant" else (),
        fields.text("tool_call_id") if role == "tool" else "",
        fields.text("reasoning_content") if role == "assistant" else "",
    )


def _call(raw: Body) -> ToolCall:
    function = Fields(raw).object("function")
    return ToolCall(
        Fields(raw).text("id"), Fields(function).text("name"), canonical_json(function.get("arguments") or "{}")
    )


def _tool(raw: Body) -> Any:
    if raw.get("type", "function") != "function":
        raise wrong(f"a tool has the type {str(raw.get('type'))[:50]!r}; only functions are served.")
    function = Fields(raw).object("function")
    return function_tool(function.get("name"), function.get("description"), function.get("parameters"))


def written_calls(calls: Sequence[ToolCall]) -> list[Body]:
    """Return calls of tools as a message of the assistant has them."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _choice(writing: Writing, call: SampledCall) -> Body:
    said = call.message
    message: Body = {"role": "assistant", "content": said.text if said.text or not said.calls else None}
    message["refusal"] = None
    if said.calls:
        message["tool_calls"] = written_calls(said.calls)
    logprobs = {"content": token_logprobs(call, writing.renderer)} if writing.request.logprobs else None
    return {"index": call.choice, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(call)}


class _ChatStream(Stream):
    def _chunk(self, choices: list[Body], **more: Any) -> Event:
        content = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.writing.now,
            "model": self.writing.model,
            "choices": choices,
        }
        return Event.of({**content, **more})

    def _delta(self, choice: int, delta: Body, reason: str | None = None, logprobs: Body | None = None) -> Event:
        return self._chunk([{"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": reason}])

    def start(self) -> Iterator[Event]:
        for choice in range(self.writing.request.choices):
            yield self._delta(choice, {"role": "assistant", "content": ""})

    def text(self, choice: int, delta: str) -> Iterator[Event]:
        yield self._delta(choice, {"content": delta})

    def end(self, calls: Sequence[SampledCall]) -> Iterator[Event]:
        for call in calls:
            for place, raw in enumerate(written_calls(call.message.calls)):
                yield self._delta(call.choice, {"tool_calls": [{"index": place, **raw}]})
            shown = self.writing.request.logprobs
            logprobs = {"content": token_logprobs(call, self.writing.renderer)} if shown else None
            yield self._delta(call.choice, {}, finish_reason(call), logprobs)
        if self.writing.request.stream_usage:
            yield self._chunk([], usage=openai_usage(calls))
        yield Event.of("[DONE]")
