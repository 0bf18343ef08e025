"""Episodes as JSON lines: a header with everything needed for a replay, the reset, the turns, and the end.

Every line is an object with a ``kind``: ``episode``, ``reset``, ``turn`` or ``end``. Unknown progress is null, because
NaN is not valid JSON; images are represented by type, shape and hash.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium.wrappers

from turngym.envs.transcript import made_of, plain_json
from turngym.errors import ConfigError
from turngym.types import StrPath
from turngym.wrappers.core import StepResult, TextWrapper

FORMAT = "turngym episodes 1"
_MADE = (gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker)


class EpisodeLog:
    """The lines of one episode, serialised immediately because callers may modify infos.

    Args:
        env: The environment.
        observation: Result of the reset.
        info: Its info.
        seed: Seed of the reset.
        options: Options of the reset.
        snapshot: Content of a snapshot after the reset, if seed and options do not determine it.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        observation: Any,
        info: Mapping[str, Any],
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        snapshot: Mapping[str, Any] | None = None,
    ) -> None:
        made: dict[str, Any] = {"wrappers": [], **made_of(env)}
        if names := foreign(env):
            made["foreign"] = names
        start = {"seed": seed, "options": dict(options or {})}
        self._lines = [_line("episode", format=FORMAT, **made, **start, snapshot=snapshot)]
        self._lines.append(_line("reset", observation=observation, info=_plain_info(info)))
        self.num_turns = 0

    def add(self, step: StepResult) -> None:
        """Record a turn."""
        self.num_turns += 1
        fields = {**step._asdict(), "info": _plain_info(step.info), "turn": self.num_turns}
        self._lines.append(_line("turn", **fields))

    def text(self, *, complete: bool) -> str:
        """Return the lines, including one for the end of the episode."""
        return "".join([*self._lines, _line("end", turns=self.num_turns, complete=complete)])


def foreign(env: gymnasium.Env[Any, Any]) -> list[str]:
    """Return the wrappers that are neither turngym's nor added by ``gymnasium.make``, the outermost first."""
    found = []
    spec = gymnasium.registry.get(env.get_wrapper_attr("env_id"))
    while isinstance(env, gymnasium.Wrapper):
        is_made = isinstance(env, (TextWrapper, *_MADE))
        if isinstance(env, gymnasium.wrappers.TimeLimit):  # made again only where the limit is a registered one
            is_made = spec is not None and spec.max_episode_steps == env._max_episode_steps
        if not is_made:
            found.append(type(env).__name__)
        env = env.env
    return found


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """One episode of a file.

    Args:
        header: Data needed to replay it.
        observations: Observations of reset and turns.
        actions: The action texts.
        rewards: The rewards.
        is_complete: True if the episode ended.
        text: The lines of the file.
    """

    header: Mapping[str, Any]
    observations: tuple[Any, ...]
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    is_complete: bool
    text: str


def read_episodes(path: StrPath) -> list[RecordedEpisode]:
    """Return the episodes of a recorded file; an incomplete last one, left by a killed process, is skipped.

    Raises:
        ConfigError: The file is not a recording, or it is damaged before its end.
    """
    lines = Path(path).read_text("utf8").split("\n")
    found: list[RecordedEpisode] = []
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines[:-1]):  # text after the last line break is empty or incomplete
        records.append(_record(line, path, number))
        if records[-1]["kind"] == "end":
            text = "\n".join(lines[number + 1 - len(records) : number + 1]) + "\n"
            found.append(_episode(records, text, path))
            records = []
    return found


def _record(line: str, path: StrPath, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if isinstance(record, dict) and record.get("kind") in ("episode", "reset", "turn", "end"):
            return record
    except ValueError:
        pass
    raise ConfigError(f"line {number + 1} of {path} is not a line of a recorded episode: {line[:60]!r}.")


def _episode(records: list[dict[str, Any]], text: str, path: StrPath) -> RecordedEpisode:
    header, *seen = records[:-1] or [{}]
    if header.get("format") != FORMAT:
        raise ConfigError(f"{path} has an episode of the format {header.get('format')!r}, expected {FORMAT!r}.")
    try:
        turns = seen[1:]
        kinds = [record["kind"] for record in seen]
        if kinds != ["reset"] + ["turn"] * records[-1]["turns"]:
            raise ValueError(f"lines are missing: {len(turns)} turns of {records[-1]['turns']}")
        return RecordedEpisode(
            header,
            tuple(record["observation"] for record in seen),
            tuple(str(record["action"]) for record in turns),
            tuple(float(record["reward"]) for record in turns),
            records[-1]["complete"] is True,
            text,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} has a damaged episode ({type(error).__name__}: {error}).") from error


def _plain_info(info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in info.items()}


def _line(kind: str, **fields: Any) -> str:
    return plain_json({"kind": kind, **fields}) + "\n"
