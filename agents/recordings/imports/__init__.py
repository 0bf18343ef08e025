"""Logs of other suites: one file a format.

Logs are untrusted like submissions: their size is bounded, no link is followed, and nothing in them is run or imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from turngym.agents.recordings.submission import (
    BASELINES,
    METRICS,
    REQUIRED,
    TRANSCRIPTS,
    key_of,
    load_submission,
)
from turngym.agents.usage import Usage
from turngym.errors import ConfigError, TurngymError
from turngym.registry import Registry
from turngym.storage.folders import is_folder

Content: TypeAlias = dict[str, Any]
ReadT = TypeVar("ReadT")
_OWN = (*REQUIRED, TRANSCRIPTS, BASELINES, "metrics.jsonl", "samples", "games.jsonl")
"""Files of folders that turngym writes."""


@dataclass(frozen=True)
class LoggedEpisode:
    """An episode of a log.

    Args:
        task: Name of its task; episodes of one task are attempts at it, and pairs in comparisons.
        turns: Turns with ``observation``, ``completion``, ``action``, ``reward`` and ``action_is_valid``.
        success: Whether it solved the task.
        score: The benchmark's number.
        instructions: Rules that the agent was shown.
        final_observation: Observation after the last turn.
        usage: Cost of the episode.
        fault: Why it broke; empty if it did not.
        label: Name of the environment or the group of tasks.
        record: Turngym's own record of the episode, where the log has one.
        environment: Turngym's own description of the environment, where the log has one.
        is_scored: Whether the log shows how it ended; success and score mean nothing where it does not.
    """

    task: str
    turns: Sequence[Content]
    success: bool
    score: float
    instructions: str = ""
    final_observation: str = ""
    usage: Usage = field(default_factory=Usage)
    fault: str = ""
    label: str = "tasks"
    record: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    is_scored: bool = True


@dataclass(frozen=True)
class Log:
    """Contents of a log.

    Args:
        agent: Name of the agent.
        suite: Name of the benchmark.
        episodes: The episodes.
        metric: Metric of the benchmark: ``success`` or ``score``.
        version: Version of the benchmark.
    """

    agent: str
    suite: str
    episodes: Sequence[LoggedEpisode]
    metric: str = "success"
    version: int = 0


@dataclass(frozen=True)
class Import:
    """A format of logs.

    Args:
        matches: Whether a path is such a log, from its name and a look at its beginning.
        read: Reads it; raises ConfigError or ValueError for one that cannot be read.
    """

    matches: Callable[[Path], bool]
    read: Callable[[Path], Log]


IMPORTS: Registry[Import] = Registry("import format", "turngym.agents.recordings.imports")


def format_of(path: Path) -> str:
    """Return the name of the format of a log of another suite; empty if it is none.

    Raises:
        ConfigError: It cannot be looked into.
    """
    if is_folder(path) and any((path / name).exists() for name in _OWN):
        return ""
    return next((name for name in IMPORTS if _tried(name, path, IMPORTS[name].matches)), "")


def read_log(path: Path) -> Log | None:
    """Return a log of another suite; None if it is none of a known format.

    Raises:
        ConfigError: It is one, and cannot be read.
    """
    name = format_of(path)
    if not name:
        return None
    log = _tried(name, path, IMPORTS[name].read)
    if not log.episodes:
        raise ConfigError(f"{path} has no episode that can be shown.")
    return log


def read_episodes(path: Path) -> Sequence[LoggedEpisode]:
    """Return the episodes of a log of another suite, or of a folder of ``turngym eval``.

    Raises:
        ConfigError: It is neither, or cannot be read.
    """
    if (log := read_log(path)) is not None:
        return log.episodes
    if not is_folder(path):
        raise ConfigError(f"{path} is not a log of {', '.join(sorted(IMPORTS))} and no folder of `turngym eval --out`.")
    submission = load_submission(path)
    rows = {key_of(row): row for row in submission.episodes}
    environments = {each["label"]: each for each in submission.config["environments"]}
    return [
        _own_episode(rows[key_of(told)], told, environments[told["label"]])
        for told in submission.transcripts or ()
        if key_of(told) in rows and told["label"] in environments
    ]


def _own_episode(row: Mapping[str, Any], told: Mapping[str, Any], environment: Mapping[str, Any]) -> LoggedEpisode:
    def text_of(seen: Any) -> str:
        return str(seen["text"] if isinstance(seen, Mapping) and "text" in seen else seen)

    return LoggedEpisode(
        f"{row['task']}.{row['attempt']}",
        [{**turn, "observation": text_of(turn["observation"])} for turn in told["turns"]],
        bool(row["success"]),
        float(row["score"]),
        str(told.get("instructions", "")),
        text_of(told.get("final_observation", "")),
        fault=str(row["fault"]),
        label=str(row["label"]),
        record=row,
        environment=environment,
    )


def _tried(name: str, path: Path, read: Callable[[Path], ReadT]) -> ReadT:
    try:
        return read(path)
    except TurngymError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{path} is not a log of {name} that can be read: {error}.") from error


def metric_of(name: Any) -> str:
    """Return a metric of ours that a log names; ``success`` for any other name."""
    return name if name in METRICS else "success"
