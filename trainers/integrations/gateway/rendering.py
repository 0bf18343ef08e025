"""Conversations as token ids: from scratch, or behind ids that are kept.

What was sampled stays as it was sampled; only what follows it is taken from the chat template. No text of a message can
become a control token of the model, see :mod:`turngym.agents.prompting.text_encoder`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from turngym.agents.models.loading import Vocabulary
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.continuation import Continuation
from turngym.agents.prompting.text_encoder import TextEncoder, Trust
from turngym.errors import ConfigError
from turngym.trainers.integrations.gateway.messages import ChatMessage, ToolCall
from turngym.trainers.integrations.gateway.refusal import Refusal, wrong
from turngym.trainers.integrations.gateway.template import Tools, ToolTemplate

_TRUSTED = ("system", "assistant")
_MARK = "\u241fanswer\u241f"


class Renderer:
    """Turns conversations into token ids.

    Args:
        model: Tokenizer and end tokens.
        config: The chat template and its variables; the other settings are not used.

    Raises:
        ConfigError: The template cannot be rendered.
    """

    def __init__(self, model: Vocabulary, config: PromptConfig | None = None) -> None:
        self.tokenizer = model.tokenizer
        self.stop_ids = model.stop_ids
        self.template = ToolTemplate(model.tokenizer, config or PromptConfig())
        self.encoder = TextEncoder(model.tokenizer)
        self._stop_texts = [str(model.tokenizer.decode([token])) for token in sorted(model.stop_ids)]
        self._continuation: Continuation | None = None
        with contextlib.suppress(ConfigError):  # without one every prompt is rendered from scratch
            self._continuation = Continuation(self.template.plain, self.encoder, model.stop_ids)

    @property
    def continues(self) -> bool:
        """Whether the template can show messages behind an answer, so that ids can be kept."""
        return self._continuation is not None

    def whole(self, messages: Sequence[ChatMessage], tools: Tools, prefill: str = "") -> tuple[int, ...]:
        """Return the prompt of a conversation.

        Args:
            messages: The conversation.
            tools: Its tools.
            prefill: Beginning of the answer.

        Raises:
            Refusal: The template does not support it.
        """

        def render(parts: Parts) -> str:
            return self.template.render(*parts)

        ids = self._encode(messages, tools, render, begins=True)
        return ids + self._prefilled(prefill)

    def after(self, last: int, messages: Sequence[ChatMessage], prefill: str = "") -> tuple[int, ...] | None:
        """Return the tokens from the end of an answer to the beginning of the next one.

        Args:
            last: The last token of the answer.
            messages: What was said since; not empty.
            prefill: Beginning of the next answer.

        Returns:
            The tokens; None if the template cannot show these messages behind an answer.
        """
        if self._continuation is None:
            return None
        try:
            ids = self._encode(messages, (), self._behind_an_answer, begins=False)
        except Refusal:
            return None
        return ids[self._continuation.written(last) :] + self._prefilled(prefill)

    def _prefilled(self, prefill: str) -> tuple[int, ...]:
        return self.encoder.encode([(prefill, "marks")], lambda texts: texts[0], begins=False) if prefill else ()

    def text_prompt(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text that is continued without a template; control tokens in it are intended."""
        begin = self.tokenizer.bos_token
        special = not (begin and text.startswith(str(begin)))
        return tuple(int(token) for token in self.tokenizer.encode(text, add_special_tokens=special))

    def text_after(self, text: str) -> tuple[int, ...]:
        """Return the tokens of such a text in the middle of a sequence."""
        return self.encoder.encode_template(text)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of an answer, without its end token."""
        return self.decoded(ids[:-1] if ids and ids[-1] in self.stop_ids else ids)

    def decoded(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones included."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _behind_an_answer(self, parts: Parts) -> str:
        """Return what the template writes after an answer, up to the next one."""
        messages, _ = parts
        assert self._continuation is not None
        before, after = self._continuation.answer
        mark = _MARK
        while any(mark in message.text for message in messages):
            mark += "\u241f"
        refusal = wrong("the model's chat template shows no message behind an answer.")
        for calls in dict.fromkeys((_dummy_calls(messages, mark), ())):  # results may need calls that they answer
            answer = ChatMessage("assistant", before + mark + after, calls)
            try:
                text = self.template.render([ChatMessage("user", "-"), answer, *messages], ())
            except Refusal as error:
                refusal = error
                continue
            rest = text.rpartition(mark)[2] if mark in text else ""
            if rest := self._from_end_of_turn(rest) if calls else rest:
                return rest
        raise refusal

    def _from_end_of_turn(self, text: str) -> str:
        """Return a text from its first end token on: before that are calls, which the answer has written itself."""
        places = [text.find(stop) for stop in self._stop_texts]
        return text[min((place for place in places if place >= 0), default=len(text)) :]

    def _encode(
        self,
        messages: Sequence[ChatMessage],
        tools: Tools,
        render: Callable[[Parts], str],
        begins: bool,
    ) -> tuple[int, ...]:
        contents = list(_contents(messages, tools))
        return self.encoder.encode(contents, lambda texts: render(_with_contents(messages, tools, texts)), begins)


Parts = tuple[list[ChatMessage], Tools]
"""Messages and tools."""


def _contents(messages: Sequence[ChatMessage], tools: Tools) -> Iterator[tuple[str, Trust]]:
    """Yield every text of a conversation, and which control tokens it may contain."""
    for message in messages:
        yield message.text, "marks" if message.role in _TRUSTED else "none"
        yield message.reasoning, "marks"
        for call in message.calls:
            yield call.name, "marks"
            yield call.arguments, "marks"
    yield json.dumps([dict(tool) for tool in tools], ensure_ascii=False), "marks"


def _with_contents(messages: Sequence[ChatMessage], tools: Tools, texts: Sequence[str]) -> Parts:
    """Return a conversation with other texts, in the order of :func:`_contents`."""
    given = iter(texts)
    found = []
    for message in messages:
        text, reasoning = next(given), next(given)
        calls = tuple(ToolCall(call.id, next(given), next(given)) for call in message.calls)
        found.append(ChatMessage(message.role, text, calls, message.call_id, reasoning))
    return found, json.loads(next(given)) if tools else ()


def _dummy_calls(messages: Sequence[ChatMessage], name: str) -> tuple[ToolCall, ...]:
    """Return calls for the results that a conversation begins with."""
    results = takewhile(lambda message: message.role == "tool", messages)
    return tuple(ToolCall(message.call_id, name, "{}") for message in results)
