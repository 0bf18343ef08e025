"""Conversations with a model as plain data, whatever the model is behind: what styles of prompting are written in.

A style asks with an :class:`Ask` and is given a :class:`Reply`; it never sees a tokenizer or a server. Agents around a
language model, in this process or behind a server, offer :class:`ChatModel`.
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
        text: Their text.
        image: An image that goes with it, [H, W, 3].
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
        turn: Position of the turn in the episode, likewise.
        purpose: Purpose of the completion: ``action``, or a name such as ``summary``.
    """

    messages: tuple[Message, ...]
    episode: int
    turn: int
    purpose: str = ACTION


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call.

    Args:
        text: Text of the model; empty if there is no completion.
        usage: Cost of the call.
        reasoning: Reasoning that a server sent apart from the answer.
        prompt_ids: Token ids of the prompt, if known.
        completion_ids: Token ids exactly as sampled.
        logprobs: The sampler's log-probability of each of these.
        too_long: Why there is no answer if the prompt did not fit.
        cut_off: Whether the answer reached its longest length without an end token.
        restricted: Whether its tokens were sampled from a part of the vocabulary.
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


@dataclass(frozen=True, slots=True)
class Note:
    """Text of a model besides its actions, such as a summary or its reasoning; stored with its turn.

    Args:
        purpose: Purpose of the call.
        text: Text of the completion.
    """

    purpose: str
    text: str


REASONING = "reasoning"
"""Purpose of a note with the reasoning that a server sent apart from the answer."""


def reasoning_notes(text: str) -> tuple[Note, ...]:
    """Return a note with a model's reasoning; none without any."""
    return (Note(REASONING, text),) if text else ()


class ChatModel(ABC):
    """The part of a language-model agent that prompting styles need."""

    prompt: PromptConfig
    """Content and length limit of a prompt."""
    format: str
    """Name of the action format."""

    @property
    def prompts_text(self) -> str:
        """Description of prompts and action format, in one line."""
        own = "in the environment's own notation, else " if self.format == AUTO else ""
        written = action_format(self.format).instruction.removeprefix("write the action ").removesuffix(".")
        return f"{mode_text(self.prompt)}; actions are written {own}{written}"

    def format_of(self, request: Request) -> ActionFormat:
        """Return how an action is written in the environment of a request."""
        return action_format(self.format, request.finds_action)

    @property
    def thinking(self) -> Thinking:
        """Reasoning markers of the model."""
        return THINKING

    @property
    def prompt_limit(self) -> int:
        """Tokens that a prompt may have; below ``max_prompt_tokens`` where the model's context is known to be short."""
        return self.prompt.max_prompt_tokens

    @property
    def fitting_limit(self) -> int:
        """Tokens that prompts are shortened to; less than may be sent where a server has refused a prompt."""
        return self.prompt_limit

    @abstractmethod
    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the answer to each call, in order; each answer is independent of the other calls."""

    def greedy(self, max_new_tokens: int) -> ChatModel | None:
        """Return this model with greedy decoding and another completion limit, not loaded again; None if it cannot."""
        return None

    @abstractmethod
    def count(self, messages: Sequence[Message]) -> int:
        """Return how many tokens a conversation has as a prompt, or a cautious guess where no tokenizer is known."""


def guessed_tokens(messages: Sequence[Message]) -> int:
    """Return a cautious guess of a conversation's tokens: one for three bytes of text, and four for each message.

    >>> guessed_tokens([Message("system", "Find the door."), Message("user", "a wall")])
    15
    """
    return sum(4 + -(-len(message.text.encode("utf8", "surrogatepass")) // 3) for message in messages)
