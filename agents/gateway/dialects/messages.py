"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turngym.agents.gateway.body import Fields, objects
from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest, ChatMessage, ToolCall, canonical_json
from turngym.agents.gateway.dialects.base import (
    Event,
    Protocol,
    Stream,
    Writing,
    function_tool,
    stop_words,
    text_of_content,
)
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Body, wrong


class MessagesProtocol(Protocol):
    """``/v1/messages``."""

    dialect = "messages"

    def read(self, body: Body, limits: GatewayLimits) -> CallRequest:
        """Return the request."""
        fields = Fields(body)
        system = text_of_content(body.get("system"), "system")
        said = [each for raw in objects(fields.items("messages"), "messages") for each in _messages(raw)]
        if not said:
            raise wrong("messages must be a list of at least one message.")
        choice = fields.object("tool_choice")
        return CallRequest(
            dialect="messages",
            model=fields.text("model"),
            messages=(*([ChatMessage("system", system)] if system else []), *said),
            tools=tuple(
                function_tool(tool.get("name"), tool.get("description"), tool.get("input_schema"))
                for tool in objects(fields.items("tools"), "tools")
            ),
            reads_calls=choice.get("type") != "none",
            prefill=said[-1].role == "assistant" and not said[-1].calls,
            stop=stop_words(fields, "stop_sequences"),
            max_tokens=fields.integer("max_tokens", 1),
            temperature=fields.number("temperature", 0, 1),
            top_p=fields.number("top_p", 1e-9, 1),
            stream=fields.flag("stream"),
        )

    def write(self, writing: Writing, calls: Sequence[SampledCall]) -> Body:
        """Return the answer."""
        call = calls[0]
        return {
            "id": call.id,
            "type": "message",
            "role": "assistant",
            "model": writing.model,
            "content": _blocks(call.message),
            **_stopped(writing.request, call, writing),
            "usage": _usage(call),
        }

    def stream(self, writing: Writing, id: str) -> Stream:
        """Return the events."""
        return _MessagesStream(writing, id)


def _messages(raw: Body) -> Iterator[ChatMessage]:
    """Yield the messages of one: results of tools are messages of their own."""
    role, content = raw.get("role"), raw.get("content")
    if role not in ("user", "assistant"):
        raise wrong(f"a message has the role {str(role)[:50]!r}; user and assistant are served.")
    if not isinstance(content, list):
        yield ChatMessage(role, text_of_content(content, "content"))
        return
    texts: list[str] = []
    calls: list[ToolCall] = []
    reasoning: list[str] = []
    has_results = False
    for block in objects(content, "content"):
        fields, kind = Fields(block), block.get("type")
        if kind == "tool_result" and role == "user":
            if texts:
                yield ChatMessage("user", "".join(texts))
                texts = []
            has_results = True
            text = text_of_content(block.get("content"), "content")
            yield ChatMessage("tool", text, call_id=fields.text("tool_use_id"))
        elif kind == "tool_use" and role == "assistant":
            calls.append(ToolCall(fields.text("id"), fields.text("name"), canonical_json(fields.object("input"))))
        elif kind in ("thinking", "redacted_thinking") and role == "assistant":
            reasoning.append(fields.text("thinking"))
        else:
            texts.append(text_of_content([block], "content"))
    if texts or not has_results:
        yield ChatMessage(role, "".join(texts), tuple(calls), reasoning="".join(reasoning))


def _blocks(said: ChatMessage) -> list[Body]:
    texts: list[Body] = [{"type": "text", "text": said.text}] if said.text else []
    return [*texts, *(_use(call, call.decoded) for call in said.calls)]


def _use(call: ToolCall, given: object) -> Body:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _stopped(request: CallRequest, call: SampledCall, writing: Writing) -> Body:
    reasons = {"stop": "end_turn", "word": "stop_sequence", "length": "max_tokens"}
    word = None
    if call.stop == "word":
        raw = writing.renderer.decoded(call.completion_ids)
        word = next((each for each in request.stop if each in raw), None)
    return {"stop_reason": "tool_use" if call.message.calls else reasons[call.stop], "stop_sequence": word}


def _usage(call: SampledCall) -> Body:
    return {
        "input_tokens": len(call.prompt_ids),
        "output_tokens": len(call.completion_ids),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


class _MessagesStream(Stream):
    _is_open = False

    def _event(self, name: str, **data: object) -> Event:
        return Event.of({"type": name, **data}, name)

    def start(self) -> Iterator[Event]:
        message: Body = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.writing.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        yield self._event("message_start", message=message)

    def text(self, choice: int, delta: str) -> Iterator[Event]:
        if not self._is_open:
            self._is_open = True
            yield self._event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": delta})

    def end(self, calls: Sequence[SampledCall]) -> Iterator[Event]:
        call = calls[0]
        if self._is_open:
            yield self._event("content_block_stop", index=0)
        for place, each in enumerate(call.message.calls, int(self._is_open)):
            yield self._event("content_block_start", index=place, content_block=_use(each, {}))
            delta = {"type": "input_json_delta", "partial_json": each.arguments}
            yield self._event("content_block_delta", index=place, delta=delta)
            yield self._event("content_block_stop", index=place)
        delta = _stopped(self.writing.request, call, self.writing)
        yield self._event("message_delta", delta=delta, usage=_usage(call))
        yield self._event("message_stop")
