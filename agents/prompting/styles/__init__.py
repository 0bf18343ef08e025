"""Prompting styles: construction of prompts, and additional calls of the model.

Each file of this package registers one style class under its name. The same style works for every model, in
this process or behind a server: ``turngym eval SUITE --agent ... --style react``, with
options as in ``summary:budget=1500``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from turngym.agents.chat import ACTION, Ask, ChatModel, Message, Note
from turngym.agents.core import Request
from turngym.agents.prompt_text import shown_text, system_text
from turngym.agents.prompting.fitting import FILLED, most_that_fit, note_of, with_note
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, PromptTooLong, nearest
from turngym.registry import Registry
from turngym.wrappers.wrapping import Wrapping

PLAIN = "plain"
Script: TypeAlias = Generator[Ask, str, str]
"""A turn as a generator: yields calls of the model, receives answers, returns the completion with the action."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A past turn.

    Args:
        observation: The shown observation.
        completion: Completion of the model.
        action: The action parsed from it.
    """

    observation: str
    completion: str
    action: str


@dataclass(frozen=True, slots=True)
class Try:
    """An earlier attempt at the same task.

    Args:
        turns: Its turns.
        final_observation: Observation after the last action.
        is_solved: True if the environment reported success.
        notes: Purpose and text of other output of the model.
    """

    turns: tuple[ChatTurn, ...]
    final_observation: str
    is_solved: bool
    notes: tuple[tuple[str, str], ...] = ()


@dataclass
class EpisodeMemory:
    """Memory of one episode.

    Args:
        turns: The turns available for prompts.
        left_out: Actions of dropped turns not covered by a summary.
        gap: Number of turns before ``turns``.
        summary: Summary of turns that are not in ``turns``.
        notes: Notes of the model, oldest first.
        noted: Number of turns with processed notes.
        lessons: Reflections on earlier attempts.
        tries: Earlier attempts at the same task, in order.
    """

    turns: list[ChatTurn] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    gap: int = 0
    summary: str = ""
    notes: tuple[str, ...] = ()
    noted: int = 0
    lessons: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()


@dataclass(frozen=True)
class Scene:
    """The current turn, with calls of the model.

    Args:
        request: Observation of the environment.
        model: The model to call; styles only count tokens and read its settings.
    """

    request: Request
    model: ChatModel

    @property
    def shown(self) -> str:
        """The shown observation."""
        if self.model.prompt.pictures_only and self.request.image is not None:
            return ""
        return shown_text(self.model.prompt, self.request.observation, self.request.info)

    @property
    def rules(self) -> str:
        """Rules and answer format; empty if not shown."""
        answer = self.model.format_of(self.request).sentence
        return system_text(self.model.prompt, self.request.instructions, answer)

    def system(self, *more: str) -> list[Message]:
        """Return the system message: the rules and a style's additions; none if both are empty."""
        text = "\n\n".join(part for part in (self.rules, *more) if part)
        return [Message("system", text)] if text else []

    def now(self, text: str | None = None) -> Message:
        """Return the message of the current observation, including its image."""
        return Message("user", self.shown if text is None else text, self.request.image)

    def fits(self, messages: Sequence[Message], limit: int | None = None) -> bool:
        """Return True if a prompt has at most ``limit`` tokens, by default the target length of shortened prompts."""
        return self.model.count(messages) <= (self.model.fitting_limit if limit is None else limit)

    def ask(self, messages: Sequence[Message], purpose: str = ACTION, attempt: int = 0) -> Ask:
        """Return a call of the model.

        Raises:
            PromptTooLong: The prompt exceeds the limit.
        """
        tokens, limit = self.model.count(messages), self.model.prompt_limit
        if tokens > limit:
            left_out = "" if self.model.prompt.fit == "none" else " with all earlier turns left out"
            raise PromptTooLong(
                f"a prompt for the {purpose} has {tokens} tokens{left_out}, more than the "
                f"{limit} that fit: raise that with --prompt max_prompt_tokens=N, up to the model's context.",
                tokens,
                limit,
            )
        return Ask(tuple(messages), self.request.episode, self.request.turn, purpose, attempt)


class Style(ABC):
    """A prompting style; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    learns_between_tries: ClassVar[bool] = False
    """True if attempts at a task depend on earlier ones and must be played in sequence."""
    needs_model: ClassVar[bool] = True
    """False if agents without a language model support the style."""
    texts: ClassVar[Mapping[str, str]] = {}
    """All prompt texts, by name."""

    @abstractmethod
    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Play a turn as a generator: yields calls, receives answers, returns the completion with the action.

        Args:
            memory: Memory, which may be modified; the turn itself is added afterwards.
            scene: Request to answer.
        """

    def counted(self, notes: Sequence[Note]) -> Usage:
        """Return the style's counts in the notes of a turn."""
        return Usage()

    def require_environments(self, env_ids: Iterable[str]) -> None:  # noqa: B027  # most styles fit all
        """Raise for environments that the style does not support.

        Raises:
            ConfigError: An environment is not supported.
        """

    def describe(self) -> dict[str, Any]:
        """Return name, options and texts, as stored in a submission folder."""
        options: dict[str, Any] = dataclasses.asdict(self) if dataclasses.is_dataclass(self) else {}
        return {"name": self.name, "options": options, "texts": dict(self.texts)}


STYLES: Registry[type[Style]] = Registry("style of prompting", "turngym.agents.prompting.styles")


def make_style(text: str) -> Style:
    """Return the style of a name or specification, such as ``summary:budget=1500``.

    Raises:
        UnknownName: There is no such style.
        ConfigError: An option does not exist, or its value is out of range.

    >>> make_style("summary:keep=3").name
    'summary'
    """
    found = Wrapping.read(text, "style")
    kind = STYLES[found.name]
    known: list[str] = [each.name for each in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for key in found.options:
        if key not in known:
            raise ConfigError(f"the style {found.name!r} has no option {key!r}. {nearest(key, known)}")
    return kind(**found.options)


def prompt_hash(format: Any, prompt: Any, style: Mapping[str, Any] | None = None) -> str:
    """Return the hash of everything except the environment that determines a prompt.

    Args:
        format: Name of the action format.
        prompt: Settings of prompts.
        style: Result of :meth:`Style.describe`; None for the plain style.
    """
    parts = [format, prompt]
    if style is not None:
        parts.append(dict(style))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def conversation(turns: Sequence[ChatTurn], now: Message, note: str = "", at: int = 0) -> list[Message]:
    r"""Return turns as messages, then the current observation; a note replaces dropped turns.

    >>> said = conversation([ChatTurn("a wall", "I turn.", "left")], Message("user", "a door"), "(...)")
    >>> [message.role for message in said], said[0].text
    (['user', 'assistant', 'user'], '(...)\n\na wall')
    """
    messages = [*answered_turns(turns), now]
    after = messages[2 * at]
    messages[2 * at] = Message(after.role, with_note(note, after.text), after.image)
    return messages


def answered_turns(turns: Sequence[ChatTurn]) -> list[Message]:
    """Return turns as messages of user and assistant."""
    messages = []
    for turn in turns:
        messages += [Message("user", turn.observation), Message("assistant", turn.completion or "(no answer)")]
    return messages


def conversation_so_far(memory: EpisodeMemory, scene: Scene, now: Message | None = None) -> list[Message]:
    """Return the available turns as messages, then the current observation."""
    note = note_of(scene.model.prompt.fit, memory.left_out, memory.gap == 0) if memory.left_out else ""
    return conversation(memory.turns, now or scene.now(), note, memory.gap)


def fitted(memory: EpisodeMemory, scene: Scene, system: Sequence[Message], now: Message | None = None) -> list[Message]:
    """Return the conversation without turns beyond the token limit; rules are never dropped.

    ``fit`` of the prompt's settings selects the turns, which are also removed from ``memory`` and do not return. A
    conversation is shortened to a fraction of the limit, so that the following prompts share a prefix, which caches can
    reuse.
    """
    prompt = scene.model.prompt
    if prompt.history:
        drop(memory, max(0, len(memory.turns) - prompt.history))
    messages = [*system, *conversation_so_far(memory, scene, now)]
    first = first_kept(scene)
    most = len(memory.turns) - first
    if prompt.fit == "none" or most <= 0 or scene.fits(messages):
        return messages

    def built(kept: int) -> tuple[EpisodeMemory, list[Message]]:
        shorter = dataclasses.replace(memory)
        drop(shorter, most - kept, at=first)
        return shorter, [*system, *conversation_so_far(shorter, scene, now)]

    target = int(scene.model.fitting_limit * FILLED)
    shorter, messages = built(most_that_fit(most - 1, lambda kept: scene.fits(built(kept)[1], target)))
    vars(memory).update(vars(shorter))
    return messages


def first_kept(scene: Scene) -> int:
    """Return the number of first turns that always stay: one, which often contains the task, or none."""
    return int(scene.model.prompt.fit in ("auto", "drop_middle"))


def drop(memory: EpisodeMemory, count: int, at: int = 0) -> None:
    """Drop turns of later prompts, from an index on."""
    if count:
        memory.left_out += tuple(turn.action for turn in memory.turns[at : at + count])
        memory.turns = [*memory.turns[:at], *memory.turns[at + count :]]
        memory.gap = at
