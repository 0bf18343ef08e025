"""What goes into a prompt, as plain text: nothing here needs a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from turngym.errors import ConfigError


@dataclass(frozen=True)
class PromptConfig:
    """What goes into a prompt.

    Args:
        mode: ``window`` (each turn its own prompt) or ``conversation`` (everything so far, append only).
        history: In window mode, how many earlier turns are shown.
        instructions: Whether the rules and the answer format are told.
        legal_actions: Whether the legal actions are listed with each observation.
        max_prompt_tokens: A longer prompt is an error; lower it to what the model and the memory can hold. A server
            knows its own limit: there this setting does nothing. Styles other than ``plain`` keep to it, for servers
            by a guess: they leave the oldest turns out, or have them summarised.
    """

    mode: Literal["window", "conversation"] = "window"
    history: int = 0
    instructions: bool = True
    legal_actions: bool = False
    max_prompt_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.mode not in ("window", "conversation"):
            raise ConfigError(f"prompt mode must be 'window' or 'conversation', got {self.mode!r}.")
        if self.history < 0:
            raise ConfigError(f"prompt history must be 0 or more turns, got {self.history}.")


def system_text(config: PromptConfig, instructions: str, answer_instruction: str) -> str:
    """Return the rules and the answer format; empty where they are not told."""
    if not config.instructions:
        return ""
    return f"{instructions}\n{answer_instruction}".strip()


def shown_text(config: PromptConfig, observation: str, info: Mapping[str, Any]) -> str:
    """Return an observation as it is shown, the legal actions below it where that is wanted."""
    if not config.legal_actions or not info.get("legal_actions"):
        return observation
    return f"{observation}\nLegal actions: {', '.join(info['legal_actions'])}"


def window_text(recent: Sequence[tuple[str, str]], shown: str) -> str:
    """Return the last turns and what is shown now.

    Args:
        recent: Observation and action of each earlier turn that is shown.
        shown: The current observation.

    >>> print(window_text([("a wall ahead", "left")], "a door ahead"))
    Earlier:
    a wall ahead
    Your action: left
    <BLANKLINE>
    Now:
    a door ahead
    """
    if not recent:
        return shown
    earlier = "\n".join(f"{observation}\nYour action: {action}" for observation, action in recent)
    return f"Earlier:\n{earlier}\n\nNow:\n{shown}"
