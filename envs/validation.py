"""Checks shared by the procedurally generated games."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from turngym.envs.core import TextEnv
from turngym.errors import ConfigError, nearest


def refuse_task(env_id: str, task: str | int | None) -> None:
    """Raise if a task was given by name: these games generate theirs from the seed."""
    if task is not None:
        raise ConfigError(f"{env_id} has no named tasks, got options={{'task': {task!r}}}: pick an instance by seed.")


def require_choice(env_id: str, option: str, value: str, choices: Collection[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ConfigError(f"{env_id} has no {option} {value!r}. {nearest(str(value), choices)}")


def require_whole(env_id: str, option: str, value: int, low: int, high: int) -> None:
    """Raise unless ``value`` is a whole number with ``low <= value <= high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{option} of {env_id} must be a whole number in [{low}, {high}], got {value!r}.")


def require_flag(env_id: str, option: str, value: bool) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{option} of {env_id} must be True or False, got {value!r}.")


def require_running(env: TextEnv[Any]) -> None:
    """Raise unless an episode is under way: otherwise there is no expert action."""
    if not env._running:
        when = "before the first reset()" if env._observation is None else "after the episode has ended"
        raise ConfigError(f"{env.env_id} has no expert action {when}: call reset() first.")
