"""Construction of prompts from an episode's history, as token ids.

Two modes. ``window``: every turn has a separate prompt with the rules, the last turns and the current observation.
``conversation``: one growing sequence of tokens, in which sampled tokens stay unchanged even if the chat template would
rewrite earlier answers, unless ``thinking=strip`` removes the reasoning.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformers import PreTrainedTokenizerBase

from turngym.agents.prompt_text import PromptConfig, shown_text, system_text, window_text
from turngym.agents.prompting.chat_template import ChatTemplate, Said
from turngym.agents.prompting.continuation import Continuation
from turngym.agents.prompting.fitting import FILLED, Gap, PastTurn, gap_for, most_that_fit, note_of, with_note
from turngym.agents.prompting.text_encoder import TextEncoder, Trust
from turngym.envs.parsing.thinking import Thinking
from turngym.errors import PromptTooLong

__all__ = ["Memory", "PastTurn", "PromptBuilder", "PromptCache", "PromptConfig"]

_TRUST: Mapping[str, Trust] = {"system": "marks", "assistant": "marks"}
"""Rules and answers may contain reasoning markers; observations may not."""


class PromptCache:
    """Encoded conversations, the latest ones, up to a number of tokens: prompts of long episodes are all different.

    Args:
        encode: Encodes a conversation.
        most: Maximum number of cached tokens, of about 36 bytes each.

    >>> cache = PromptCache(lambda messages: (7,) * len(messages), most=3)
    >>> cache((("user", "a"),)), cache((("user", "b"), ("user", "c"))), cache((("user", "d"),)), cache.tokens
    ((7,), (7, 7), (7,), 3)
    """

    def __init__(self, encode: Callable[[tuple[Said, ...]], tuple[int, ...]], most: int = 4_000_000) -> None:
        self._encode, self._most = encode, most
        self._kept: dict[tuple[Said, ...], tuple[int, ...]] = {}
        self._lock = threading.Lock()
        self.tokens = 0

    def __call__(self, messages: tuple[Said, ...]) -> tuple[int, ...]:
        """Return the ids of a conversation."""
        known = self._kept.get(messages)
        ids = self._encode(messages) if known is None else known
        with self._lock:
            self.tokens += len(ids) - len(self._kept.pop(messages, ()))
            self._kept[messages] = ids
            while self.tokens > self._most:
                self.tokens -= len(self._kept.pop(next(iter(self._kept))))
        return ids


@dataclass
class Memory:
    """Memory of an agent for one episode.

    Args:
        turns: The earlier turns.
        ids: In conversation mode, the whole sequence so far, including the last completion.
        gap: In conversation mode, the dropped turns.
    """

    turns: list[PastTurn] = field(default_factory=list)
    ids: tuple[int, ...] = ()
    gap: Gap = field(default_factory=Gap)


class PromptBuilder:
    """Builder of prompts as token ids from memory and observation.

    Args:
        tokenizer: A tokenizer with a chat template.
        config: Prompt settings.
        stop_ids: The tokens that end a completion.

    Raises:
        ConfigError: The chat template cannot be rendered, or cannot continue a conversation in that mode.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: PromptConfig,
        stop_ids: frozenset[int],
    ) -> None:
        self.config = config
        self.stop_ids = stop_ids
        self.template = ChatTemplate(tokenizer, config)
        self.encoder = TextEncoder(tokenizer)
        self._ids_of = PromptCache(self._encode)
        if config.mode == "conversation" and config.thinking != "strip":
            self._continuation = Continuation(self.template, self.encoder, stop_ids)

    @property
    def thinking(self) -> Thinking:
        """Reasoning markers of the model."""
        return self.template.thinking

    def prompt(
        self,
        memory: Memory,
        observation: str,
        info: Mapping[str, Any],
        instructions: str,
        answer: str = "",
        *,
        room: int = sys.maxsize,
    ) -> tuple[int, ...]:
        """Return the prompt for the next completion.

        Args:
            memory: Memory of the episode.
            observation: Current observation.
            info: Its info table.
            instructions: The rules.
            answer: Sentence about the answer format, appended to the rules.
            room: Tokens available for the prompt in the model's context.

        Raises:
            PromptTooLong: The prompt is longer than ``max_prompt_tokens`` or ``room``.
        """
        shown = shown_text(self.config, observation, info)
        system = system_text(self.config, instructions, answer)
        start: tuple[Said, ...] = (("system", system),) if system else ()
        limit = min(self.config.max_prompt_tokens, room)
        ids = self._build(memory, start, shown)
        if len(ids) > limit and self.config.is_shortened:
            ids = self._shortened(memory, start, shown, limit)
        if len(ids) <= limit:
            return ids
        if room < self.config.max_prompt_tokens:
            most = f"the {room} that the model's context has room for: lower max_new_tokens or"
        else:
            most = f"max_prompt_tokens={limit}: raise it, lower"
        way_out = "the environment's max_turns, or use prompt mode 'window' with a short history."
        if not self.config.is_shortened and memory.turns:
            way_out = f"{way_out[:-1]}, or leave turns out with fit=drop_oldest."
        raise PromptTooLong(f"a prompt has {len(ids)} tokens, more than {most} {way_out}", len(ids), limit)

    def chat(self, messages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Return a conversation, pairs of role and text, as the prompt for the answer to its last message."""
        return self._ids_of(tuple(messages))

    def answer(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an answer that was not sampled, without end token.

        If the template starts the reasoning, the answer closes it first.
        """
        return self.encoder.encode_one(self.thinking.closed(text), "marks")

    def _build(self, memory: Memory, start: tuple[Said, ...], shown: str) -> tuple[int, ...]:
        if self.config.mode == "window":
            recent = self._recent(memory)
            return self._window(recent, Gap(), start, shown) if recent else self._ids_of((*start, ("user", shown)))
        if self.config.thinking == "strip":
            return self._stripped(memory.turns, memory.gap, start, shown)
        if not memory.ids:
            return self._ids_of((*start, ("user", shown)))
        return memory.ids + self._continuation.after(memory.ids[-1], shown, len(memory.turns))

    def _shortened(self, memory: Memory, start: tuple[Said, ...], shown: str, limit: int) -> tuple[int, ...]:
        """Return the prompt with as few dropped turns as possible; without any turns if it is still too long.

        Dropped turns of a conversation do not return, and it is shortened to a fraction of the limit, to leave room for
        further turns.
        """
        is_window = self.config.mode == "window"
        turns = self._recent(memory) if is_window else memory.turns
        build = self._window if is_window else self._stripped if self.config.thinking == "strip" else self._spliced
        target = limit if is_window else int(limit * FILLED)

        @cache
        def built(kept: int) -> tuple[int, ...]:
            return build(turns, gap_for(self.config.fit, len(turns), kept), start, shown)

        most = max(len(turns) - memory.gap.size - 1, 0)
        kept = most_that_fit(most, lambda count: len(built(count)) <= target)
        if not is_window:
            memory.gap = gap_for(self.config.fit, len(turns), kept)
        return built(kept)

    def _recent(self, memory: Memory) -> Sequence[PastTurn]:
        return memory.turns[-self.config.history :] if self.config.history else ()

    def _note(self, turns: Sequence[PastTurn], gap: Gap) -> str:
        left_out = [turn.action for turn in turns[gap.start : gap.stop]]
        return note_of(self.config.fit, left_out, gap.start == 0) if left_out else ""

    def _window(self, turns: Sequence[PastTurn], gap: Gap, start: tuple[Said, ...], shown: str) -> tuple[int, ...]:
        recent = [(turn.observation, turn.answer) for turn in (*turns[: gap.start], *turns[gap.stop :])]
        said: Said = ("user", window_text(recent, shown, self._note(turns, gap), gap.start))
        return self._encode((*start, said)) if gap.size else self._ids_of((*start, said))

    def _stripped(self, turns: Sequence[PastTurn], gap: Gap, start: tuple[Said, ...], shown: str) -> tuple[int, ...]:
        """Return a conversation encoded from scratch."""
        seen = self._seen(turns, gap, shown)
        answers = [turn.answer for turn in (*turns[: gap.start], *turns[gap.stop :])]
        past: list[Said] = []
        for observation, answer in zip(seen[:-1], answers, strict=True):
            past += [("user", observation), ("assistant", answer)]
        return self._encode((*start, *past, ("user", seen[-1])))

    def _spliced(self, turns: Sequence[PastTurn], gap: Gap, start: tuple[Said, ...], shown: str) -> tuple[int, ...]:
        """Return a conversation without some of its turns, keeping the sampled tokens of the remaining answers."""
        first, *others = self._seen(turns, gap, shown)
        answers = [turn.ids for turn in (*turns[: gap.start], *turns[gap.stop :])]
        ids = list(self._encode((*start, ("user", first))))
        for turn, (answer, seen) in enumerate(zip(answers, others, strict=True), start=1):
            ids += answer
            ids += self._continuation.after(ids[-1], seen, turn)
        return tuple(ids)

    def _seen(self, turns: Sequence[PastTurn], gap: Gap, shown: str) -> list[str]:
        """Return the shown observations, the current one last, with the note about dropped turns."""
        before = [turn.observation for turn in turns[: gap.start]]
        after = [*(turn.observation for turn in turns[gap.stop :]), shown]
        return [*before, with_note(self._note(turns, gap), after[0]), *after[1:]]

    def _encode(self, messages: tuple[Said, ...]) -> tuple[int, ...]:
        roles = [role for role, _ in messages]
        return self.encoder.encode(
            [(text, _TRUST.get(role, "none")) for role, text in messages],
            lambda texts: self.template.render(list(zip(roles, texts, strict=True)), True),
        )
