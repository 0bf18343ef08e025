"""Conversations with a model as plain data: the interface that prompt styles use, for local and served models.

A style sends an :class:`Ask` and receives a :class:`Reply`; it never sees a tokenizer or a server. Agents with a
language model, local or served, implement :class:`ChatModel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from turngym.agents.core import Request
from turngym.agents.prompt_text import PromptConfig, mode_text
from turngym.agents.usage import Usage
from turngym.envs.parsing.thinking import THINKING, Thinking
from turngym.wrappers.actions.action_format import AUTO, ActionFormat, action_format

Role = Literal["system", "user", "assistant"]
ACTION = "action"
"""Purpose of the call whose answer holds the action; any other purpose prepares it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Args:
        role: Role of the speaker.
        text: The text.
        image: Attached image, [H, W, 3].
    """

    role: Role
    text: str
    image: NDArray[np.uint8] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a model.

    Args:
        messages: The conversation so far.
        episode: Number of the episode, part of the sampling key.
        turn: Position of the turn in the episode, also part of the key.
        purpose: Purpose of the completion: ``action``, or a name such as ``summary``.
        attempt: Number of earlier calls for the same purpose in this turn, whose answers are replaced.
    """

    messages: tuple[Message, ...]
    episode: int
    turn: int
    purpose: str = ACTION
    attempt: int = 0

    @property
    def key(self) -> str:
        """Part of the sampling key besides episode and turn; empty for the first call for an action."""
        if self.attempt:
            return f"{self.purpose} {self.attempt}"
        return "" if self.purpose == ACTION else self.purpose


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call.

    Args:
        text: Text of the model; empty if there is no completion.
        usage: Cost of the call.
        reasoning: Reasoning that a server returned separately.
        prompt_ids: Token ids of the prompt, if known.
        completion_ids: Token ids exactly as sampled.
        logprobs: The sampler's log-probability of each of these.
        too_long: Reason for the missing answer if the prompt did not fit.
        cut_off: Whether the answer reached the maximum length without an end token.
        restricted: Whether its tokens were sampled from part of the vocabulary.
        pictures: The images in the prompt as PNG files, if known.
    """

    text: str
    usage: Usage
    reasoning: str = field(default="", kw_only=True)
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    too_long: str = ""
    cut_off: bool = False
    restricted: bool = False
    pictures: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Note:
    """Text of a model other than its actions, such as a summary or reasoning; stored with its turn.

    Args:
        purpose: Purpose of the call.
        text: Text of the completion.
    """

    purpose: str
    text: str


REASONING = "reasoning"
"""Purpose of a note with the reasoning that a server sent apart from the answer."""


def reasoning_notes(text: str) -> tuple[Note, ...]:
    """Return a note with a model's reasoning, or no note."""
    return (Note(REASONING, text),) if text else ()


class ChatModel(ABC):
    """The part of a language-model agent that prompting styles need."""

    prompt: PromptConfig
    """Content and length limit of a prompt."""
    format: str
    """Name of the action format."""

    @property
    def prompts_text(self) -> str:
        """One-line description of prompts and action format."""
        own = "in the environment's own notation, else " if self.format == AUTO else ""
        written = action_format(self.format).instruction.removeprefix("write the action ").removesuffix(".")
        return f"{mode_text(self.prompt)}; actions are written {own}{written}"

    def format_of(self, request: Request) -> ActionFormat:
        """Return the action format for a request's environment."""
        return action_format(self.format, request.finds_action)

    @property
    def thinking(self) -> Thinking:
        """Reasoning markers of the model."""
        return THINKING

    @property
    def prompt_limit(self) -> int:
        """Maximum prompt tokens: ``max_prompt_tokens``, or less if the model's context is known to be shorter."""
        return self.prompt.max_prompt_tokens

    @property
    def fitting_limit(self) -> int:
        """Tokens to which prompts are shortened; below the limit after a server has refused a prompt."""
        return self.prompt_limit

    @abstractmethod
    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the answer to each call, in order; calls are independent."""

    def greedy(self, max_new_tokens: int) -> ChatModel | None:
        """Return this model with greedy decoding and another completion limit, not reloaded; None if unsupported."""
        return None

    @abstractmethod
    def count(self, messages: Sequence[Message]) -> int:
        """Return the prompt tokens of a conversation, or a conservative estimate without a tokenizer."""


def guessed_tokens(messages: Sequence[Message]) -> int:
    """Return a conservative token estimate of a conversation: one per three bytes of text, plus four per message.

    >>> guessed_tokens([Message("system", "Find the door."), Message("user", "a wall")])
    15
    """
    return sum(4 + -(-len(message.text.encode("utf8", "surrogatepass")) // 3) for message in messages)
