"""Trajectories from files: transcripts of evaluations, recordings of the wrapper ``record``, and those of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.storage.bounded import LARGEST_LINES, require_file
from turngym.storage.files import read_jsonl, write_atomic
from turngym.trainers.reward_models.base.turns import whole_turns
from turngym.wrappers.recording.episode_log import RecordedEpisode, read_episodes

T = TypeVar("T")
_LONGEST_HEADER = 1 << 20
_TRANSCRIPTS, _EPISODES = "transcripts.jsonl", "episodes.jsonl"
_KEY = ("label", "task", "attempt")
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors of malformed values."""


def read_trajectories(path: Path) -> list[Trajectory]:
    """Return the recorded episodes of a file or folder, those that were cut short by a kill left out.

    Of the folder of an evaluation the transcripts are read, with faults and instances from its episodes; of any other
    folder all files ``*.jsonl`` in it.

    Raises:
        ConfigError: There are no episodes, or a file has another format.
    """
    if (path / _TRANSCRIPTS).is_file():
        return _evaluated(path)
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise ConfigError(f"{path} holds no recorded episodes: pass the folder of an evaluation (turngym eval --out).")
    return [trajectory for file in files for trajectory in _of_file(file)]


def _of_file(path: Path) -> Iterator[Trajectory]:
    with _readable(path):
        require_file(path, LARGEST_LINES)
        with path.open(encoding="utf8") as file:
            first = file.readline(_LONGEST_HEADER)
        if is_recording := '"kind": "episode"' in first or '"kind":"episode"' in first:
            yield from (_recorded(each) for each in read_episodes(path) if each.is_complete)
    if not is_recording:
        yield from (_trajectory(record, path) for record in _records(path))


def _records(path: Path) -> list[dict[str, Any]]:
    return read_rows(path, lambda row: row)


def read_rows(path: Path, read: Callable[[dict[str, Any]], T]) -> list[T]:
    """Return what a function reads of each line of a file of JSON lines, which is untrusted.

    Raises:
        ConfigError: There is no such file, or it has another format.
    """
    with _readable(path):
        require_file(path, LARGEST_LINES)
        return [read(row) for row in read_jsonl(path)]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Convert errors in a file to a ConfigError."""
    try:
        yield
    except _DAMAGE as error:
        raise ConfigError(f"{path} holds no recorded episodes ({type(error).__name__}: {str(error)[:200]}).") from error


def _evaluated(folder: Path) -> list[Trajectory]:
    with _readable(folder / _EPISODES):
        rows = {_key(row): row for row in _records(folder / _EPISODES)}
    found = []
    for record in _records(folder / _TRANSCRIPTS):
        with _readable(folder / _TRANSCRIPTS):
            row = rows.get(_key(record), {})
        more: dict[str, Any] = {
            name: row[name] for name in ("instance", "fault", "terminated", "truncated") if name in row
        }
        found.append(_trajectory({**record, **more}, folder / _TRANSCRIPTS))
    return found


def _key(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(record.get(name)) for name in _KEY)


def _trajectory(record: Mapping[str, Any], path: Path) -> Trajectory:
    with _readable(path):
        return Trajectory(
            EpisodeSpec(0, int(record.get("seed") or 0)),
            env_id=str(record.get("env", "")),
            instance=str(record.get("instance", "")),
            turns=[_turn(turn) for turn in record["turns"]],
            terminated=record.get("terminated", False) is True,
            truncated=record.get("truncated", False) is True,
            success=int(record["success"]),
            score=_number(record.get("score")),
            fault=str(record.get("fault", "")),
            final_observation=_text(record["final_observation"]),
            final_anchor=str(record.get("final_anchor", "")),
            progress=_number(record.get("progress")),
        )


def _turn(record: Mapping[str, Any]) -> Turn:
    return Turn(
        _text(record["observation"]),
        str(record.get("anchor", "")),
        str(record["action"]),
        reward=float(record["reward"]),
        action_is_valid=record.get("action_is_valid", True) is True,
        progress=_number(record.get("progress")),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _recorded(episode: RecordedEpisode) -> Trajectory:
    """Return an episode that the wrapper ``record`` has written; lines that were checked there."""
    lines = [json.loads(line) for line in episode.text.removesuffix("\n").split("\n")]
    seen = [line for line in lines if line["kind"] in ("reset", "turn")]
    infos = [line.get("info", {}) for line in seen]
    turns = [
        Turn(
            _text(before["observation"]),
            str(info.get("anchor", "")),
            action,
            reward=reward,
            action_is_valid=after.get("info", {}).get("action_is_valid", True) is True,
            progress=_number(info.get("progress")),
        )
        for before, info, after, action, reward in zip(
            seen, infos, seen[1:], episode.actions, episode.rewards, strict=False
        )
    ]
    last, info = seen[-1], infos[-1]
    return Trajectory(
        EpisodeSpec(0, int(episode.header.get("seed") or 0)),
        env_id=str(episode.header.get("env_id") or episode.header.get("env") or ""),
        turns=turns,
        terminated=last.get("terminated") is True,
        truncated=last.get("truncated") is True,
        success=int(info.get("success", -1)),
        score=_number(info.get("score")),
        fault=str(info.get("fault", "")),
        final_observation=_text(last["observation"]),
        final_anchor=str(info.get("anchor", "")),
        progress=_number(info.get("progress")),
    )


def _text(observation: Any) -> str:
    """Return the text of an observation, that of an image environment too."""
    return str(observation.get("text", "")) if isinstance(observation, Mapping) else str(observation)


def plain(trajectory: Trajectory) -> dict[str, Any]:
    """Return what a reward model reads of an episode, as JSON-compatible data."""
    turns = [
        {
            "observation": turn.observation,
            "anchor": turn.anchor,
            "action": turn.action,
            "reward": turn.reward,
            "action_is_valid": turn.action_is_valid,
            "progress": _finite(turn.progress),
        }
        for turn in whole_turns(trajectory)
    ]
    return {
        "env": trajectory.env_id,
        "seed": trajectory.spec.seed,
        "instance": trajectory.instance,
        "turns": turns,
        "terminated": trajectory.terminated,
        "truncated": trajectory.truncated,
        "success": trajectory.success,
        "score": _finite(trajectory.score),
        "fault": trajectory.fault,
        "final_observation": trajectory.final_observation,
        "final_anchor": trajectory.final_anchor,
        "progress": _finite(trajectory.progress),
    }


def lightened(trajectory: Trajectory) -> Trajectory:
    """Return an episode without tokens and snapshots, so that many can be kept."""
    return _trajectory(plain(trajectory), Path())


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write episodes so that :func:`read_trajectories` reads them."""
    lines = [json.dumps(plain(each), ensure_ascii=False) for each in trajectories]
    write_atomic(path, "".join(line + "\n" for line in lines))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
