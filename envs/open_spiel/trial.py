"""Trials of parameters in a separate process, because some make OpenSpiel crash, hang or exhaust the memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from turngym.errors import ConfigError
from turngym.system.limited import CallLimits, LimitedProcess

IS_TRIAL: ContextVar[bool] = ContextVar("IS_TRIAL", default=False)
"""True while a game is made as the trial of its parameters."""
_FILE_ENDINGS = ("file", "filename", "path", "root")
_LONGEST_TEXT = 200_000
_LIMITS = CallLimits(seconds=30.0, memory_mib=2048, answer_mib=1)


def try_setting(rules: str, setting: Mapping[str, Any]) -> None:
    """Make a game in a process with limits.

    Raises:
        ConfigError: A parameter names a file or is not a number, bool or text, or the game cannot be made with it.
        LimitReached: OpenSpiel crashed, hung or took too much memory.
    """
    for key, value in setting.items():
        if not isinstance(key, str) or key.endswith(_FILE_ENDINGS):
            raise ConfigError(
                f"the parameter {key!r} of OpenSpiel's game {rules} is refused: no game reads files here."
            )
        if not isinstance(value, bool | int | float | str):
            raise ConfigError(
                f"the parameter {key!r} of OpenSpiel's game {rules} must be a number, a truth value or a text, got "
                f"{value!r:.80}."
            )
    _try_elsewhere(rules, json.dumps(setting), os.getpid())


@lru_cache(maxsize=256)
def _try_elsewhere(rules: str, setting: str, _pid: int) -> None:
    with LimitedProcess(_LIMITS) as process:
        process.call(f"{__name__}:load", {"rules": rules, "setting": json.loads(setting)})


def load(rules: str, setting: Mapping[str, Any]) -> None:
    """Make a game, which may end this process.

    Raises:
        ConfigError: It cannot be made.
    """
    from turngym.envs.open_spiel.game import OpenSpiel

    token = IS_TRIAL.set(True)
    try:
        game = OpenSpiel(rules=rules, setting=setting)
        if any(len(game.prompt(seat)) > _LONGEST_TEXT for seat in game.asked()):
            raise ConfigError(f"the texts of OpenSpiel's game {rules} have more than {_LONGEST_TEXT:,} characters.")
    finally:
        IS_TRIAL.reset(token)
