"""Building prompts from what an agent has seen and said, as token ids.

Two modes. ``window``: every turn has a prompt of its own, made of the rules, the last turns and the current
observation. ``conversation``: one growing sequence of tokens; what was sampled stays in it exactly as sampled.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from transformers import PreTrainedTokenizerBase

from turngym.agents.chat_template import ChatTemplate, Said
from turngym.agents.prompt_text import PromptConfig, shown_text, system_text, window_text
from turngym.agents.text_encoder import TextEncoder, Trust
from turngym.errors import ConfigError, PromptTooLong

__all__ = ["Memory", "PromptBuilder", "PromptConfig"]

_PLACEHOLDER = "\u241fanswer\u241f"
_TRUST: Mapping[str, Trust] = {"system": "marks", "assistant": "marks"}
"""Rules may name the marks of answers, and answers hold them; what an environment shows may not write any."""


@dataclass
class Memory:
    """What an agent remembers of one episode.

    Args:
        turns: Earlier observations and what is shown of the answers to them.
        ids: In conversation mode the whole sequence so far, last completion included.
    """

    turns: list[tuple[str, str]] = field(default_factory=list)
    ids: tuple[int, ...] = ()


class PromptBuilder:
    """Turns memories and observations into token ids.

    Args:
        tokenizer: A tokenizer with a chat template.
        config: What goes into a prompt.
        stop_ids: The tokens that end a completion.
        answer_instruction: Sentence about the answer format, put after the rules.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: PromptConfig,
        stop_ids: frozenset[int],
        answer_instruction: str = "",
    ) -> None:
        self.config = config
        self.stop_ids = stop_ids
        self.answer_instruction = answer_instruction
        self.template = ChatTemplate(tokenizer, config)
        self.encoder = TextEncoder(tokenizer)
        self._ids_of = lru_cache(maxsize=100_000)(self._encode)
        self._continuation_of = lru_cache(maxsize=1000)(self._continuation)
        if config.mode == "conversation" and config.thinking != "strip":
            self._check_prefix_preserving()

    def prompt(
        self,
        memory: Memory,
        observation: str,
        info: Mapping[str, Any],
        instructions: str,
        *,
        room: int = sys.maxsize,
    ) -> tuple[int, ...]:
        """Return the prompt for the next completion.

        Args:
            memory: What is remembered of the episode.
            observation: What is seen now.
            info: Its info table.
            instructions: The rules.
            room: Tokens that the model's context leaves for it.

        Raises:
            PromptTooLong: It is longer than ``max_prompt_tokens`` or ``room``.
        """
        ids = self._build(memory, observation, info, instructions)
        limit = min(self.config.max_prompt_tokens, room)
        if len(ids) <= limit:
            return ids
        if room < self.config.max_prompt_tokens:
            most = f"the {room} that the model's context has room for: lower max_new_tokens or"
        else:
            most = f"max_prompt_tokens={limit}: raise it, lower"
        way_out = "the environment's max_turns, or use prompt mode 'window' with a short history."
        raise PromptTooLong(f"a prompt has {len(ids)} tokens, more than {most} {way_out}", len(ids), limit)

    def chat(self, messages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Return a conversation, pairs of role and text, as the prompt for the answer to its last message."""
        return self._ids_of(tuple(messages))

    def answer(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an answer that was not sampled, without its end token."""
        return self.encoder.encode_one(text, "marks")

    def _build(self, memory: Memory, observation: str, info: Mapping[str, Any], instructions: str) -> tuple[int, ...]:
        shown = shown_text(self.config, observation, info)
        system = system_text(self.config, instructions, self.answer_instruction)
        start: tuple[Said, ...] = (("system", system),) if system else ()
        if self.config.mode == "window":
            recent = memory.turns[-self.config.history :] if self.config.history else []
            return self._ids_of((*start, ("user", window_text(recent, shown))))
        if self.config.thinking == "strip":
            past = [said for seen, answer in memory.turns for said in (("user", seen), ("assistant", answer))]
            return self._encode((*start, *past, ("user", shown)))
        if not memory.ids:
            return self._ids_of((*start, ("user", shown)))
        return memory.ids + self._continuation_of(memory.ids[-1] in self.stop_ids, shown)

    def _encode(self, messages: tuple[Said, ...]) -> tuple[int, ...]:
        roles = [role for role, _ in messages]
        return self.encoder.encode(
            [(text, _TRUST.get(role, "none")) for role, text in messages],
            lambda texts: self.template.render(list(zip(roles, texts, strict=True)), True),
        )

    def _continuation(self, is_closed: bool, shown: str) -> tuple[int, ...]:
        """Return the tokens from the end of a completion to the start of the next one."""

        def after_answer(contents: Sequence[str]) -> str:
            text = self.template.render([("user", "-"), ("assistant", _PLACEHOLDER), ("user", contents[0])], True)
            return text[text.index(_PLACEHOLDER) + len(_PLACEHOLDER) :]

        ids = self.encoder.encode([(shown, "none")], after_answer)
        return ids[1:] if is_closed and ids and ids[0] in self.stop_ids else ids

    def _check_prefix_preserving(self) -> None:
        """Refuse a template that rewrites earlier turns: tokens that were sampled could not stay as they are.

        Space before an answer does not matter. With ``thinking=keep`` the template may leave thinking out.
        """
        keeps = self.config.thinking == "keep"
        answer = _PLACEHOLDER if keeps else f"<think>why</think>{_PLACEHOLDER}"
        start: list[Said] = [("user", "first"), ("assistant", answer)]
        prompt = "" if keeps else self.template.render(start[:1], True)
        text = self.template.render([*start, ("user", "second"), ("assistant", answer)], False)
        begins = keeps or (text.startswith(prompt) and text[len(prompt) :].lstrip().startswith(answer))
        if not begins or text.count(answer) != 2:
            raise ConfigError(
                "this tokenizer's chat template rewrites earlier answers, so a conversation cannot keep the sampled "
                "tokens: use prompt mode 'window', or thinking=keep (as sampled) or thinking=strip (encoded anew at "
                "every turn) with mode 'conversation'."
            )
