"""OpenAI's completions: a text, or tokens, to continue without a chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turngym.agents.gateway.body import Fields
from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest
from turngym.agents.gateway.dialects.base import (
    Event,
    Protocol,
    Stream,
    Writing,
    finish_reason,
    openai_usage,
    stop_words,
)
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import Body, wrong

_USUAL_LENGTH = 16


class CompletionsProtocol(Protocol):
    """``/v1/completions``, for one prompt."""

    dialect = "completions"

    def read(self, body: Body, limits: GatewayLimits) -> CallRequest:
        """Return the request."""
        fields = Fields(body)
        if fields.text("suffix"):
            raise wrong("suffix is not served: the model continues a text at its end.")
        return CallRequest(
            dialect="completions",
            model=fields.text("model"),
            prompt=_prompt(body.get("prompt")),
            choices=fields.integer("n", 1, limits.max_choices) or 1,
            stop=stop_words(fields),
            seed=fields.integer("seed", -(2**63)),
            max_tokens=fields.integer("max_tokens", 1) or _USUAL_LENGTH,
            temperature=fields.number("temperature", 0, 10),
            top_p=fields.number("top_p", 1e-9, 1),
            logprobs=fields.integer("logprobs", 0, 20) is not None,
            stream=fields.flag("stream"),
            stream_usage=Fields(fields.object("stream_options")).flag("include_usage"),
            echo=fields.flag("echo"),
        )

    def write(self, writing: Writing, calls: Sequence[SampledCall]) -> Body:
        """Return the answer."""
        return {
            "id": calls[0].id,
            "object": "text_completion",
            "created": writing.now,
            "model": writing.model,
            "choices": [_choice(writing, call) for call in calls],
            "usage": openai_usage(calls),
        }

    def stream(self, writing: Writing, id: str) -> Stream:
        """Return the events."""
        return _CompletionsStream(writing, id)


def _prompt(raw: Any) -> str | tuple[int, ...]:
    if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], str | list):
        raw = raw[0]
    if isinstance(raw, str) and raw:
        return raw
    if isinstance(raw, list) and raw and all(isinstance(each, int) and not isinstance(each, bool) for each in raw):
        return tuple(raw)
    raise wrong("prompt must be one text or one list of tokens, not empty.")


def _choice(writing: Writing, call: SampledCall) -> Body:
    logprobs = None
    if writing.request.logprobs:
        tokens = [writing.renderer.decoded([token]) for token in call.completion_ids]
        logprobs = {"tokens": tokens, "token_logprobs": list(call.logprobs), "top_logprobs": None, "text_offset": None}
    text = (call.prompt_text if writing.request.echo else "") + call.message.text
    return {"index": call.choice, "text": text, "logprobs": logprobs, "finish_reason": finish_reason(call)}


class _CompletionsStream(Stream):
    def _chunk(self, choices: list[Body], **more: Any) -> Event:
        content = {
            "id": self.id,
            "object": "text_completion",
            "created": self.writing.now,
            "model": self.writing.model,
            "choices": choices,
        }
        return Event.of({**content, **more})

    def start(self) -> Iterator[Event]:
        prompt = self.writing.request.prompt
        for choice in range(self.writing.request.choices if self.writing.request.echo else 0):
            yield from self.text(choice, prompt if isinstance(prompt, str) else "")

    def text(self, choice: int, delta: str) -> Iterator[Event]:
        yield self._chunk([{"index": choice, "text": delta, "logprobs": None, "finish_reason": None}])

    def end(self, calls: Sequence[SampledCall]) -> Iterator[Event]:
        for call in calls:
            end = {"index": call.choice, "text": "", "logprobs": None, "finish_reason": finish_reason(call)}
            yield self._chunk([end])
        if self.writing.request.stream_usage:
            yield self._chunk([], usage=openai_usage(calls))
        yield Event.of("[DONE]")
