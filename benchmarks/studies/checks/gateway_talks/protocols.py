"""Three protocols as clients write and read them.

Histories become bodies of requests, and whole or streamed replies become answers.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, ClassVar

Body = dict[str, Any]
Call = tuple[str, str, str]
"""Id, name, and arguments as JSON with sorted keys."""


@dataclass(frozen=True)
class Said:
    """A message.

    Args:
        role: Who says it.
        text: What.
        calls: Tools that are called.
        call_id: The call that a tool answers.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""

    def canonical(self) -> list[Any]:
        """Return it as data; lone surrogates are what a server sees."""
        text = self.text.encode("utf8", "surrogatepass").decode("utf8", "replace").replace("\ufffd" * 3, "\ufffd")
        return [self.role, text, [list(call) for call in self.calls], self.call_id]


def _call_of(id: str, name: str, arguments: Any) -> Call:
    """Return a call with its arguments in one form."""
    return id, name, json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments, sort_keys=True)


def rewritten(arguments: str, draw: random.Random) -> str:
    """Return the same arguments, written down in another way."""
    data = json.loads(arguments)
    if draw.random() < 0.5:
        data = dict(reversed(data.items()))
    return json.dumps(data, indent=draw.choice([None, 2]), ensure_ascii=draw.random() < 0.5)


def events_of(content: bytes) -> list[Body]:
    """Return the data of a stream's events."""
    lines = [line[6:] for line in content.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _parts(text: str, kind: str, draw: random.Random) -> Any:
    """Return a text, as it is or in parts."""
    if draw.random() < 0.6 or not text:
        return text
    cut = draw.randrange(len(text))
    return [{"type": kind, "text": piece} for piece in (text[:cut], text[cut:])]


_PARAMETERS: Body = {"type": "object", "properties": {"to": {"type": "array"}}}


class ChatSpeaker:
    """Chat completions."""

    name: ClassVar[str] = "chat"
    path: ClassVar[str] = "chat/completions"
    has_choices: ClassVar[bool] = True
    has_stop: ClassVar[bool] = True

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def body(self, history: list[Said], about: Body, options: Body, draw: random.Random) -> Body:
        body: Body = {"model": "x", "messages": [self._message(said, draw) for said in history]}
        body["n"], body["stream"] = options["choices"], options["stream"]
        if about["tools"]:
            functions = [{"name": name, "description": name, "parameters": _PARAMETERS} for name in about["tools"]]
            body["tools"] = [{"type": "function", "function": function} for function in functions]
        if about["json"]:
            body["response_format"] = {"type": "json_object"}
        if "stop" in options:
            body["stop"] = options["stop"]
        if "max_tokens" in options:
            body["max_completion_tokens"] = options["max_tokens"]
        return body

    def _message(self, said: Said, draw: random.Random) -> Body:
        message: Body = {"content": _parts(said.text, "text", draw), "role": said.role}
        if said.calls:
            message["content"] = said.text or None
            message["tool_calls"] = [
                {"type": "function", "id": id, "function": {"arguments": rewritten(given, draw), "name": name}}
                for id, name, given in said.calls
            ]
        if said.role == "tool":
            message["tool_call_id"] = said.call_id
        if said.role == "assistant":
            message["provider_specific_fields"] = None
        return message

    def read(self, content: bytes, stream: bool) -> tuple[str, list[Said]]:
        if not stream:
            found = json.loads(content)
            return found["id"], [self._said(choice["message"]) for choice in found["choices"]]
        events = events_of(content)
        messages: dict[int, Body] = {}
        for event in events:
            for choice in event["choices"]:
                message = messages.setdefault(choice["index"], {"content": "", "tool_calls": []})
                message["content"] += choice["delta"].get("content") or ""
                message["tool_calls"] += choice["delta"].get("tool_calls") or []
        return events[0]["id"], [self._said(messages[k]) for k in sorted(messages)]

    def _said(self, message: Body) -> Said:
        calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or []]
        made = tuple(_call_of(id, function["name"], function["arguments"]) for id, function in calls)
        return Said("assistant", message["content"] or "", made)


class MessagesSpeaker:
    """Anthropic's messages."""

    name: ClassVar[str] = "messages"
    path: ClassVar[str] = "messages"
    has_choices: ClassVar[bool] = False
    has_stop: ClassVar[bool] = True

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, history: list[Said], about: Body, options: Body, draw: random.Random) -> Body:
        body: Body = {"model": "x", "max_tokens": options.get("max_tokens", 50), "stream": options["stream"]}
        if history[0].role == "system":
            body["system"], history = history[0].text, history[1:]
        body["messages"] = [self._message(said, draw) for said in history]
        if about["tools"]:
            body["tools"] = [
                {"name": name, "description": name, "input_schema": _PARAMETERS} for name in about["tools"]
            ]
        if "stop" in options:
            body["stop_sequences"] = options["stop"]
        return body

    def _message(self, said: Said, draw: random.Random) -> Body:
        if said.role == "tool":
            result = {"type": "tool_result", "tool_use_id": said.call_id, "content": _parts(said.text, "text", draw)}
            return {"role": "user", "content": [result]}
        if said.role == "user":
            return {"role": "user", "content": _parts(said.text, "text", draw)}
        texts: list[Body] = [{"type": "text", "text": said.text}] if said.text else []
        uses = [
            {"type": "tool_use", "id": id, "name": name, "input": json.loads(given)} for id, name, given in said.calls
        ]
        return {"role": "assistant", "content": [*texts, *uses]}

    def read(self, content: bytes, stream: bool) -> tuple[str, list[Said]]:
        if not stream:
            found = json.loads(content)
            return found["id"], [self._said(found["content"])]
        id, blocks = "", dict[int, Body]()
        for event in events_of(content):
            if event["type"] == "message_start":
                id = event["message"]["id"]
            elif event["type"] == "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "json": ""}
            elif event["type"] == "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                block["text"] = block.get("text", "") + delta.get("text", "")
                block["json"] += delta.get("partial_json", "")
        for block in blocks.values():
            if block["type"] == "tool_use":
                block["input"] = json.loads(block["json"])
        return id, [self._said([blocks[k] for k in sorted(blocks)])]

    def _said(self, blocks: list[Body]) -> Said:
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        return Said("assistant", text, tuple(_call_of(use["id"], use["name"], use["input"]) for use in uses))


class ResponsesSpeaker:
    """OpenAI's responses."""

    name: ClassVar[str] = "responses"
    path: ClassVar[str] = "responses"
    has_choices: ClassVar[bool] = False
    has_stop: ClassVar[bool] = False

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"bearer {key}"}

    def body(self, history: list[Said], about: Body, options: Body, draw: random.Random) -> Body:
        body: Body = {"model": "x", "stream": options["stream"]}
        if history[0].role == "system" and draw.random() < 0.5:
            body["instructions"], history = history[0].text, history[1:]
        body["input"] = [item for said in history for item in self._items(said, draw)]
        if about["tools"]:
            body["tools"] = [
                {"type": "function", "name": name, "description": name, "parameters": _PARAMETERS}
                for name in about["tools"]
            ]
        if about["json"]:
            body["text"] = {"format": {"type": "json_object"}}
        if "max_tokens" in options:
            body["max_output_tokens"] = options["max_tokens"]
        return body

    def _items(self, said: Said, draw: random.Random) -> list[Body]:
        if said.role == "tool":
            return [{"type": "function_call_output", "call_id": said.call_id, "output": said.text}]
        kind = "output_text" if said.role == "assistant" else "input_text"
        texts: list[Body] = []
        if said.text or not said.calls:
            texts = [{"type": "message", "role": said.role, "content": _parts(said.text, kind, draw)}]
        calls = [
            {"type": "function_call", "call_id": id, "name": name, "arguments": rewritten(given, draw)}
            for id, name, given in said.calls
        ]
        return [*texts, *calls]

    def read(self, content: bytes, stream: bool) -> tuple[str, list[Said]]:
        found = events_of(content)[-1]["response"] if stream else json.loads(content)
        if stream:
            deltas = [event["delta"] for event in events_of(content) if event["type"] == "response.output_text.delta"]
            texts = [part["text"] for item in found["output"] for part in item.get("content", [])]
            assert "".join(deltas) == "".join(texts), "a stream differs from its end"
        text = "".join(part["text"] for item in found["output"] for part in item.get("content", []))
        calls = [item for item in found["output"] if item["type"] == "function_call"]
        made = tuple(_call_of(item["call_id"], item["name"], item["arguments"]) for item in calls)
        return found["id"], [Said("assistant", text, made)]


SPEAKERS = {speaker.name: speaker for speaker in (ChatSpeaker(), MessagesSpeaker(), ResponsesSpeaker())}
