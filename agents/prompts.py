"""Building prompts from what an agent has seen and said, as token ids.

Two modes. ``window``: every turn has a prompt of its own, made of the rules, the last turns and the current
observation. ``conversation``: one growing sequence of tokens; what was sampled stays in it exactly as sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from transformers import PreTrainedTokenizerBase

from turngym.agents.prompt_text import PromptConfig, shown_text, system_text, window_text
from turngym.errors import ConfigError

__all__ = ["Memory", "PromptBuilder", "PromptConfig"]

_PLACEHOLDER = "\u241fanswer\u241f"


@dataclass
class Memory:
    """What an agent remembers of one episode.

    Args:
        turns: Earlier observations and actions.
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
        self.tokenizer = tokenizer
        self.config = config
        self.stop_ids = stop_ids
        self.answer_instruction = answer_instruction
        self._chat_ids_of = lru_cache(maxsize=1000)(self._encode_chat)
        self._ids_of = lru_cache(maxsize=100_000)(self._encode_messages)
        if config.mode == "conversation":
            self._check_prefix_preserving()

    def prompt(self, memory: Memory, observation: str, info: Mapping[str, Any], instructions: str) -> tuple[int, ...]:
        """Return the prompt for the next completion.

        Raises:
            ConfigError: It is longer than ``max_prompt_tokens``.
        """
        ids = self._build(memory, observation, info, instructions)
        if len(ids) > self.config.max_prompt_tokens:
            raise ConfigError(
                f"a prompt has {len(ids)} tokens, more than max_prompt_tokens={self.config.max_prompt_tokens}: raise "
                "it, lower the environment's max_turns, or use prompt mode 'window' with a short history."
            )
        return ids

    def chat(self, messages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Return a conversation, pairs of role and text, as the prompt for the answer to its last message."""
        return self._chat_ids_of(tuple(messages))

    def _encode_chat(self, messages: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
        return self._encode(self._render([{"role": role, "content": text} for role, text in messages], True))

    def _build(self, memory: Memory, observation: str, info: Mapping[str, Any], instructions: str) -> tuple[int, ...]:
        shown = shown_text(self.config, observation, info)
        system = system_text(self.config, instructions, self.answer_instruction)
        if self.config.mode == "window":
            recent = memory.turns[-self.config.history :] if self.config.history else []
            return self._ids_of(system, window_text(recent, shown))
        if not memory.ids:
            return self._ids_of(system, shown)
        return memory.ids + self._continuation(memory.ids[-1] in self.stop_ids, shown)

    def _render(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool) -> str:
        text = self.tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=add_generation_prompt
        )
        return str(text)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    def _encode_messages(self, system: str, user: str) -> tuple[int, ...]:
        messages = [{"role": "system", "content": system}] if system else []
        return self._encode(self._render([*messages, {"role": "user", "content": user}], True))

    def _continuation(self, is_closed: bool, shown: str) -> tuple[int, ...]:
        """Return the tokens from the end of a completion to the start of the next one."""
        text = self._render(
            [
                {"role": "user", "content": "-"},
                {"role": "assistant", "content": _PLACEHOLDER},
                {"role": "user", "content": shown},
            ],
            True,
        )
        ids = self._encode(text[text.index(_PLACEHOLDER) + len(_PLACEHOLDER) :])
        return ids[1:] if is_closed and ids and ids[0] in self.stop_ids else ids

    def _check_prefix_preserving(self) -> None:
        """Refuse a template that rewrites earlier turns: tokens that were sampled could not stay as they are."""
        answer = f"<think>why</think>{_PLACEHOLDER}"
        start = [{"role": "user", "content": "first"}, {"role": "assistant", "content": answer}]
        longer = [*start, {"role": "user", "content": "second"}, {"role": "assistant", "content": answer}]
        prompt, text = self._render(start[:1], True), self._render(longer, False)
        if not text.startswith(prompt + answer) or text.count(answer) != 2:
            raise ConfigError(
                "this tokenizer's chat template rewrites earlier answers, so a conversation cannot keep the sampled "
                "tokens: use prompt mode 'window'."
            )
