"""Prompt settings and text, without a tokenizer."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from turngym.envs.parsing.thinking import THINKING, Regions, Thinking
from turngym.errors import ConfigError
from turngym.options import Natural, OptionError, Options

Fit: TypeAlias = Literal["auto", "none", "drop_oldest", "drop_middle", "summary"]
"""Selection of earlier turns dropped from long prompts."""
DATE = "2025-01-01"
"""The date that chat templates write unless another one is set: prompts do not depend on the day."""


class PromptConfig(Options):
    """Prompt settings.

    Args:
        mode: ``window`` (a new prompt per turn) or ``conversation`` (append-only, with any chat template that can
            render a user message after an assistant message). The default for servers is ``conversation``, unless
            ``history`` is given.
        history: Number of earlier turns in window mode.
        instructions: Include rules and answer format.
        legal_actions: List the legal actions with each observation.
        max_prompt_tokens: Maximum prompt length in tokens; lower it to save memory. The model's context is a separate
            limit. For servers, tokens are estimated from the text length, and only styles and ``fit`` respect the
            limit: the server enforces its own.
        fit: Handling of longer prompts. ``none``: the episode is truncated, with the reason ``context``.
            ``drop_oldest`` drops the oldest turns, ``drop_middle`` always keeps the first turn, ``summary`` adds counts
            of the dropped actions; the prompt notes the number of dropped turns. ``auto`` is ``drop_middle`` in styles
            other than ``plain`` and, after a server rejected a prompt, for servers, else ``none``: in conversations a
            shortened prompt starts a new training sequence.
        system: System prompt instead of rules and answer format, which replace ``{rules}`` and ``{format}`` in it.
        thinking: Reasoning in earlier completions (delimited as in the chat template, such as ``<think>...</think>``):
            ``keep`` shows completions as sampled, ``strip`` removes reasoning, ``auto`` keeps it in conversations, even
            where the chat template would remove it, and shows only actions in windows. A conversation with ``strip`` is
            re-encoded every turn and gives one training sequence per turn.
        template: Variables of the chat template, such as ``enable_thinking``.
        date: Date for chat templates that render one, as YYYY-MM-DD; ``today`` is the day on which the settings are
            created, and is stored with a run.
        chat_template: Jinja chat template that replaces the tokenizer's; a file on the command line.
        pictures_only: Omit the text of observations with an image, for vision models.
    """

    mode: Literal["window", "conversation"] = "window"
    history: Natural = 0
    instructions: bool = True
    legal_actions: bool = False
    max_prompt_tokens: int = 4096
    fit: Fit = "auto"
    system: str = ""
    thinking: Literal["auto", "keep", "strip"] = "auto"
    template: Mapping[str, Any] = field(default_factory=dict)
    date: str = DATE
    chat_template: str = ""
    pictures_only: bool = False

    def check(self) -> None:
        """Check the date and the chat template."""
        if self.date == "today":
            object.__setattr__(self, "date", datetime.date.today().isoformat())
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError as error:
            raise OptionError("date", f"must be today or YYYY-MM-DD, got {self.date!r}.") from error
        _check_template(self.template, self.chat_template)

    @property
    def is_shortened(self) -> bool:
        """True if plain prompts that are too long are shortened."""
        return self.fit not in ("auto", "none")


def _check_template(variables: Mapping[str, Any], text: str) -> None:
    """Raise for invalid template settings.

    Raises:
        ConfigError: The variables override a fixed variable, or the text is not valid Jinja.
    """
    taken = variables.keys() & {
        "messages",
        "add_generation_prompt",
        "chat_template",
        "tokenize",
        "conversation",
        "strftime_now",
    }
    if taken:
        raise ConfigError(f"template.{min(taken)} is set by turngym itself: leave it out.")
    if text and "{{" not in text:
        raise ConfigError(f"chat_template must be Jinja text with {{{{ ... }}}}, got {text[:60]!r}.")


def remembered_text(
    config: PromptConfig, action: str, completion: str, regions: Regions, thinking: Thinking = THINKING
) -> str:
    """Return the part of an answer shown in later prompts: by default the action in windows, all in conversations.

    Args:
        config: Prompt settings.
        action: The action in the answer.
        completion: The answer.
        regions: Positions of actions in an answer, ignoring reasoning.
        thinking: Reasoning markers of the model.
    """
    if config.mode == "window" and config.thinking != "keep":
        return action
    return thinking.without(completion, regions) if config.thinking == "strip" else completion


def system_text(config: PromptConfig, instructions: str, answer_instruction: str) -> str:
    """Return the rules and the answer format, or the custom system text; empty if neither is shown.

    >>> system_text(PromptConfig(system="Be brief. {format}"), "Push boxes.", "Say it.")
    'Be brief. Say it.'
    """
    if config.system:
        return config.system.replace("{rules}", instructions).replace("{format}", answer_instruction)
    if not config.instructions:
        return ""
    return f"{instructions}\n{answer_instruction}".strip()


def mode_text(config: PromptConfig) -> str:
    """Describe in a few words how much of an episode a prompt shows.

    >>> mode_text(PromptConfig(mode="conversation")), mode_text(PromptConfig(history=3))
    ('the whole conversation', 'the last 3 turns and the current observation')
    """
    if config.mode == "conversation":
        return "the whole conversation"
    if not config.history:
        return "the current observation without earlier turns"
    return f"the last {config.history} turns and the current observation"


def shown_text(config: PromptConfig, observation: str, info: Mapping[str, Any]) -> str:
    """Return an observation for the prompt, followed by the legal actions if enabled."""
    if not config.legal_actions or not info.get("legal_actions"):
        return observation
    return f"{observation}\nLegal actions: {', '.join(info['legal_actions'])}"


def window_text(recent: Sequence[tuple[str, str]], shown: str, note: str = "", at: int = 0) -> str:
    """Return the text of a window: the last turns and the current observation.

    Args:
        recent: Observation and action of each earlier turn.
        shown: The current observation.
        note: Note about dropped turns.
        at: Number of turns before the note.

    >>> print(window_text([("a wall ahead", "left")], "a door ahead"))
    Earlier:
    a wall ahead
    Your action: left
    <BLANKLINE>
    Now:
    a door ahead
    """
    parts = [f"{observation}\nYour action: {action}" for observation, action in recent]
    if note:
        parts.insert(at, note)
    earlier = "\n".join(parts)
    return f"Earlier:\n{earlier}\n\nNow:\n{shown}" if parts else shown
