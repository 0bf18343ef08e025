"""Checks shared by the procedurally generated games."""

from __future__ import annotations

from typing import Any

from turngym.envs.core import TextEnv
from turngym.errors import ConfigError
from turngym.types import JSONValue

NUMBERS = 2**40
"""Instances of worlds of work are drawn by a number below this."""


def refuse_task(env_id: str, task: str | int | None) -> None:
    """Raise if a task was given by name: these games generate theirs from the seed."""
    if task is not None:
        raise ConfigError(f"{env_id} has no named tasks, got options={{'task': {task!r}}}: pick an instance by seed.")


def require_running(env: TextEnv[Any]) -> None:
    """Raise unless an episode is under way: otherwise there is no expert action."""
    if not env._running:
        when = "before the first reset()" if env._observation is None else "after the episode has ended"
        raise ConfigError(f"{env.env_id} has no expert action {when}: call reset() first.")


def saved_number(value: JSONValue) -> int:
    """Return the number of an instance, or raise a ValueError if a snapshot has none there."""
    if type(value) is not int or not 0 <= value < NUMBERS:
        raise ValueError(f"the number {value!r}")
    return value


def saved_texts(value: JSONValue, most: int) -> list[str]:
    """Return up to so many texts, or raise a ValueError if a snapshot has none there."""
    if not isinstance(value, list) or len(value) > most or not all(isinstance(each, str) for each in value):
        raise ValueError(f"the texts {str(value)[:100]!r}")
    return value
