"""Conversations as token ids: from scratch, or behind ids that are kept.

What was sampled stays as it was sampled; only what follows it is taken from the chat template. No text of a message can
become a control token of the model, see :mod:`turngym.agents.prompting.text_encoder`.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from typing import TypeAlias

from turngym.agents.gateway.conversations.call_formats import Tools
from turngym.agents.gateway.conversations.messages import ChatMessage, ToolCall
from turngym.agents.gateway.conversations.probing import TOOL, calls_in
from turngym.agents.gateway.conversations.template import ToolTemplate
from turngym.agents.gateway.refusal import Refusal, wrong
from turngym.agents.models.loading import Vocabulary
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.chat_template import shared
from turngym.agents.prompting.continuation import Continuation
from turngym.agents.prompting.text_encoder import TextEncoder, Trust
from turngym.errors import ConfigError, PromptWarning

_TRUSTED = ("system", "assistant")
_SHAPES = 1000
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
        self._continuation: Continuation | None = None
        with contextlib.suppress(ConfigError):  # without one every prompt is rendered from scratch
            self._continuation = Continuation(self.template.plain, self.encoder, model.stop_ids)
        self._shows = lru_cache(maxsize=_SHAPES)(self._finds_messages)
        if self.template.knows_tools and self.continues and not self._shows((("tool", 0, True),), 1):
            warnings.warn(
                "the chat template shows no result of a tool behind a call: conversations with tools are rendered from "
                "scratch at every call, and only their last answers are trained on. To avoid it, pass another template "
                "with chat_template=FILE.",
                PromptWarning,
                stacklevel=2,
            )

    @property
    def continues(self) -> bool:
        """True if the template can show messages behind an answer, so that ids can be kept."""
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

    def after(
        self, last: int, messages: Sequence[ChatMessage], prefill: str = "", calls: Sequence[ToolCall] = ()
    ) -> tuple[int, ...] | None:
        """Return the tokens from the end of an answer to the start of the next one.

        Args:
            last: The last token of the answer.
            messages: New messages; not empty.
            prefill: Beginning of the next answer.
            calls: Calls of tools in the answer.

        Returns:
            The tokens; None if the template cannot show these messages behind an answer.
        """
        if self._continuation is None:
            return None
        results = list(takewhile(lambda message: message.role == "tool", messages))
        answered = _answered(results, calls) if self.template.knows_tools else ()
        if not self._shows(tuple((each.role, len(each.calls), bool(each.text)) for each in messages), len(answered)):
            return None
        try:
            ids = self._encode(messages, (), partial(self._behind, calls=answered), begins=False)
        except Refusal:
            return None
        written = self._written_before_results(last, ids) if answered else self._continuation.written(last)
        return ids[written:] + self._prefilled(prefill)

    def _written_before_results(self, last: int, ids: Sequence[int]) -> int:
        """Return how many tokens behind calls the last token of an answer stands for."""
        if last not in self.stop_ids:
            return 0
        assert self._continuation is not None
        first = self._continuation.first_control(ids)
        is_end = first >= 0 and (
            ids[first] == last or (ids[first] in self.stop_ids and self._continuation.written(last))
        )
        return first + 1 if is_end else 0

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

    def _behind(self, parts: Parts, calls: Sequence[ToolCall]) -> str:
        """Return what the template writes after an answer with calls or without, up to the next one."""
        messages, _ = parts
        return self._behind_calls(messages, calls) if calls else self._behind_a_text(messages)

    def _behind_calls(self, messages: Sequence[ChatMessage], calls: Sequence[ToolCall]) -> str:
        """Return what the template writes after the last of some calls.

        A template that shows one call at a time is shown the last one.
        """
        assert self._continuation is not None
        before = self._continuation.answer[0].strip()
        asked = ChatMessage("user", "-")
        refusal = wrong("the model's chat template shows no results of tools behind calls.")
        for shown in (calls, calls[-1:])[: len(calls)]:
            answer = ChatMessage("assistant", before, tuple(shown))
            try:
                text = self.template.exactly([asked, answer, *messages])
                start = shared(self.template.exactly([asked]), text)
            except Refusal as error:
                refusal = error
                continue
            found = calls_in(self.template.format, text[start:], len(shown))
            if [each.name for each in found] == [call.name for call in shown]:
                return text[start + found[-1].end :]
        raise refusal

    def _behind_a_text(self, messages: Sequence[ChatMessage]) -> str:
        assert self._continuation is not None
        before, after = self._continuation.answer
        mark = _MARK
        while any(mark in message.text for message in messages):
            mark += "\u241f"
        answer = ChatMessage("assistant", before + mark + after)
        text = self.template.render([ChatMessage("user", "-"), answer, *messages], ())
        if mark not in text:
            raise wrong("the model's chat template shows no message behind an answer.")
        return text.rpartition(mark)[2]

    def _finds_messages(self, shape: Shape, calls: int) -> bool:
        """Return whether messages of some shape stand behind an answer, each with its text."""
        answered = called = [ToolCall(f"call_probe_{place}", TOOL, "{}") for place in range(calls)]
        ids = [call.id for call in called]
        probes = []
        for place, (role, count, has_text) in enumerate(shape):
            called = [ToolCall(f"call_probe_{place}_{number}", TOOL, "{}") for number in range(count)]
            ids += [call.id for call in called]
            id = ids.pop(0) if role == "tool" and ids else ""
            probes.append(ChatMessage(role, f"probe{place}probe" if has_text else "", tuple(called), id))
        try:
            text = self._behind((probes, ()), answered)
        except Refusal:
            return False
        return all(probe.text in text for probe in probes)

    def _encode(
        self,
        messages: Sequence[ChatMessage],
        tools: Tools,
        render: Callable[[Parts], str],
        begins: bool,
    ) -> tuple[int, ...]:
        contents = list(_contents(messages, tools))
        return self.encoder.encode(contents, lambda texts: render(_with_contents(messages, tools, texts)), begins)


Parts: TypeAlias = tuple[list[ChatMessage], Tools]
"""Messages and tools."""
Shape: TypeAlias = tuple[tuple[str, int, bool], ...]
"""Role, number of calls, and whether there is a text, of each message."""


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


def _answered(results: Sequence[ChatMessage], calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls that results answer, without their arguments, which only the answer itself has to show."""
    names = {call.id: call.name for call in calls}
    return tuple(ToolCall(each.call_id, names.get(each.call_id, TOOL), "{}") for each in results)


class StopWords:
    """Words that end an answer. The text ends before the word; the tokens end with the one that completes it.

    Args:
        words: The words, none of them empty.
        renderer: Decodes tokens.
    """

    def __init__(self, words: Sequence[str], renderer: Renderer) -> None:
        self.words = tuple(words)
        self._renderer = renderer

    def before(self, text: str) -> str:
        """Return the text before the first of the words."""
        places = [place for place in map(text.find, self.words) if place >= 0]
        return text[: min(places)] if places else text

    def ends_at(self, ids: Sequence[int]) -> int:
        """Return how many tokens an answer has up to the one that completes a word; 0 if it has none."""
        if not self._has_word(ids):
            return 0
        low, high = 1, len(ids)
        while low < high:
            middle = (low + high) // 2
            if self._has_word(ids[:middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _has_word(self, ids: Sequence[int]) -> bool:
        text = self._renderer.text_of(ids)
        return any(word in text for word in self.words)
