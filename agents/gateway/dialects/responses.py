"""OpenAI's responses, as far as agents use them: texts, functions, and earlier responses by their id."""

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
    function_tool,
    json_mode,
    text_of_content,
)
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Body, wrong

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_REPEATED = ("instructions", "metadata", "tools", "tool_choice", "parallel_tool_calls", "previous_response_id")


class ResponsesProtocol(Protocol):
    """``/v1/responses``."""

    dialect = "responses"

    def read(self, body: Body, limits: GatewayLimits) -> CallRequest:
        """Return the request."""
        fields = Fields(body)
        if fields.flag("background"):
            raise wrong("background is not served: wait for the answer.")
        instructions = fields.text("instructions")
        system = [ChatMessage("system", instructions)] if instructions else []
        return CallRequest(
            dialect="responses",
            model=fields.text("model"),
            messages=(*system, *_input(body.get("input"))),
            tools=tuple(_tool(tool) for tool in objects(fields.items("tools"), "tools")),
            reads_calls=body.get("tool_choice") != "none",
            max_tokens=fields.integer("max_output_tokens", 1),
            temperature=fields.number("temperature", 0, 10),
            top_p=fields.number("top_p", 1e-9, 1),
            logprobs="message.output_text.logprobs" in fields.items("include"),
            json_mode=json_mode(fields.object("text").get("format")),
            stream=fields.flag("stream"),
            previous=fields.text("previous_response_id"),
            extra={name: body[name] for name in _REPEATED if body.get(name) is not None},
        )

    def write(self, writing: Writing, calls: Sequence[SampledCall]) -> Body:
        """Return the answer."""
        call = calls[0]
        is_cut = call.stop == "length" and not call.message.calls
        return {
            **_response_of(writing, call.id, "incomplete" if is_cut else "completed"),
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": _output(call),
            "usage": {
                "input_tokens": len(call.prompt_ids),
                "input_tokens_details": {"cached_tokens": call.kept},
                "output_tokens": len(call.completion_ids),
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": len(call.ids),
            },
        }

    def stream(self, writing: Writing, id: str) -> Stream:
        """Return the events."""
        return _ResponsesStream(writing, id)


def _response_of(writing: Writing, id: str, status: str) -> Body:
    """Return a response without output."""
    usual: Body = {
        "instructions": None,
        "metadata": {},
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "previous_response_id": None,
    }
    return {
        "id": id,
        "object": "response",
        "created_at": writing.now,
        "model": writing.model,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "temperature": writing.request.temperature,
        "top_p": writing.request.top_p,
        "max_output_tokens": writing.request.max_tokens,
        "usage": None,
        **usual,
        **writing.request.extra,
    }


def _input(raw: Any) -> Iterator[ChatMessage]:
    """Yield the messages of an input; a text and calls of one answer are one message."""
    if isinstance(raw, str):
        yield ChatMessage("user", raw)
        return
    if not isinstance(raw, list) or not raw:
        raise wrong("input must be a string or a list of items, not empty.")
    answer: ChatMessage | None = None
    for item in objects(raw, "input"):
        found = _item(item)
        if found is None:
            continue
        if found.role == "assistant" and answer is not None and not (found.text and answer.calls):
            answer = ChatMessage("assistant", answer.text + found.text, answer.calls + found.calls)
            continue
        if answer is not None:
            yield answer
        answer = found if found.role == "assistant" else None
        if answer is None:
            yield found
    if answer is not None:
        yield answer


def _item(item: Body) -> ChatMessage | None:
    fields, kind = Fields(item), item.get("type", "message")
    if kind == "message":
        role = _ROLES.get(fields.text("role"))
        if role is None:
            raise wrong(f"a message has the role {str(item.get('role'))[:50]!r}; {', '.join(_ROLES)} are served.")
        return ChatMessage(role, text_of_content(item.get("content"), "content"))
    if kind == "function_call":
        arguments = canonical_json(item.get("arguments") or "{}")
        return ChatMessage("assistant", "", (ToolCall(fields.text("call_id"), fields.text("name"), arguments),))
    if kind == "function_call_output":
        return ChatMessage("tool", text_of_content(item.get("output"), "output"), call_id=fields.text("call_id"))
    if kind == "reasoning":
        return None
    raise wrong(f"an item of the type {str(kind)[:50]!r} is not served.")


def _tool(raw: Body) -> Any:
    if raw.get("type") != "function":
        raise wrong(f"a tool has the type {str(raw.get('type'))[:50]!r}; only functions are served.")
    return function_tool(raw.get("name"), raw.get("description"), raw.get("parameters"))


def _text_item(call: SampledCall, status: str = "completed") -> Body:
    part = {"type": "output_text", "text": call.message.text, "annotations": [], "logprobs": []}
    return {"id": f"{call.id}-m", "type": "message", "role": "assistant", "status": status, "content": [part]}


def _call_item(call: ToolCall) -> Body:
    about = {"id": f"fc-{call.id}", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"type": "function_call", "status": "completed", **about}


def _output(call: SampledCall) -> list[Body]:
    texts = [_text_item(call)] if call.message.text or not call.message.calls else []
    return [*texts, *map(_call_item, call.message.calls)]


class _ResponsesStream(Stream):
    def __init__(self, writing: Writing, id: str) -> None:
        super().__init__(writing, id)
        self._number = 0
        self._sent = ""
        self._is_open = False

    def _event(self, kind: str, /, **data: object) -> Event:
        self._number += 1
        return Event.of({"type": kind, "sequence_number": self._number - 1, **data}, kind)

    @property
    def _place(self) -> Body:
        return {"item_id": f"{self.id}-m", "output_index": 0, "content_index": 0}

    def start(self) -> Iterator[Event]:
        yield self._event("response.created", response=_response_of(self.writing, self.id, "in_progress"))
        yield self._event("response.in_progress", response=_response_of(self.writing, self.id, "in_progress"))

    def _opened(self) -> Iterator[Event]:
        self._is_open = True
        about = {"id": f"{self.id}-m", "type": "message", "role": "assistant", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=0, item={**about, "content": []})
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._event("response.content_part.added", part=part, **self._place)

    def text(self, choice: int, delta: str) -> Iterator[Event]:
        if not self._is_open:
            yield from self._opened()
        self._sent += delta
        yield self._event("response.output_text.delta", delta=delta, logprobs=[], **self._place)

    def end(self, calls: Sequence[SampledCall]) -> Iterator[Event]:
        call = calls[0]
        for place, item in enumerate(_output(call)):
            if item["type"] == "message":
                if not self._is_open:
                    yield from self._opened()
                text, part = self._sent, item["content"][0]
                yield self._event("response.output_text.done", text=text, logprobs=[], **self._place)
                yield self._event("response.content_part.done", part=part, **self._place)
            else:
                empty = {**item, "arguments": "", "status": "in_progress"}
                about = {"item_id": item["id"], "output_index": place}
                yield self._event("response.output_item.added", output_index=place, item=empty)
                arguments = item["arguments"]
                yield self._event("response.function_call_arguments.delta", delta=arguments, **about)
                yield self._event(
                    "response.function_call_arguments.done", name=item["name"], arguments=arguments, **about
                )
            yield self._event("response.output_item.done", output_index=place, item=item)
        whole = ResponsesProtocol().write(self.writing, calls)
        yield self._event(f"response.{whole['status']}", response=whole)
