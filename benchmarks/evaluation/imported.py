"""Logs of other suites as folders of evaluations."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from turngym.agents.episodes.evaluate import summarise_records
from turngym.agents.recordings.imports import Content, Log, LoggedEpisode, read_log
from turngym.agents.recordings.submission import TRANSCRIPTS
from turngym.agents.usage import total
from turngym.benchmarks.evaluation.records import metrics
from turngym.benchmarks.statistics.estimates import as_json, equal_weight_mean
from turngym.errors import ConfigError
from turngym.storage.files import write_json


@contextmanager
def as_folder(path: Path, scored: bool = True) -> Iterator[Path]:
    """Yield the folder of an evaluation for a path: the path itself, or a temporary one with what a log holds.

    Args:
        path: The path.
        scored: Refuse logs that do not show how their episodes ended.

    Raises:
        ConfigError: The log cannot be read, or has no scores.
    """
    log = read_log(path)
    if log is None:
        yield path
        return
    if scored and not all(episode.is_scored for episode in log.episodes):
        raise ConfigError(f"{path} has episodes without a score, such as plain ATIF: `turngym view` shows them.")
    with tempfile.TemporaryDirectory(prefix="turngym-log-") as folder:
        target = Path(folder) / (path.resolve().stem or "log")
        try:
            write_log(log, target)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ConfigError(f"{path} is not a log that can be read: {error}.") from error
        yield target


def write_log(log: Log, folder: Path) -> None:
    """Write a log as the folder of an evaluation."""
    folder.mkdir(parents=True)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    rows, transcripts = [], []
    tasks: dict[str, dict[str, int]] = {}
    attempts: dict[tuple[str, str], int] = {}
    for episode in sorted(log.episodes, key=lambda each: (each.label, each.record.get("task", 0), each.task)):
        numbers = tasks.setdefault(episode.label, {})
        attempt = attempts.get((episode.label, episode.task), 0)
        attempts[episode.label, episode.task] = attempt + 1
        row = _row(log, episode, numbers.setdefault(episode.task, len(numbers)), attempt, started)
        rows.append(row)
        transcripts.append(_transcript(episode, row))
    for name, found in (("episodes.jsonl", rows), (TRANSCRIPTS, transcripts)):
        text = "".join(json.dumps(each, allow_nan=False) + "\n" for each in found)
        (folder / name).write_text(text, "utf8")
    write_json(folder / "config.json", _config(log, rows))
    write_json(folder / "metadata.json", _metadata(log, started))
    write_json(folder / "results.json", _results(log, rows))


def _row(log: Log, episode: LoggedEpisode, task: int, attempt: int, started: str) -> Content:
    actions = [str(turn["action"]) for turn in episode.turns]
    told = [[turn["observation"], turn["action"], turn["reward"]] for turn in episode.turns]
    own = {
        "env": "",
        "env_version": "",
        "ruleset_hash": "",
        "seed": int(hashlib.sha256(episode.task.encode()).hexdigest()[:12], 16),
        "block_id": episode.task,
        "instance": episode.task,
        "returns": float(sum(turn["reward"] for turn in episode.turns)),
        "terminated": not episode.fault,
        "truncated": bool(episode.fault),
        "status": "env_error" if episode.fault else "ok",
        "fault": episode.fault,
        "transcript_sha256": hashlib.sha256(json.dumps(told).encode()).hexdigest(),
        "seats": {"player_0": episode.usage.as_json()},
        "seat_map": {"player_0": log.agent},
        "started": started,
        **episode.record,
    }
    if own["status"] == "env_error":
        own |= {"returns": min(0.0, own["returns"]), "terminated": False}
    is_broken = own["status"] == "env_error"
    return {
        **own,
        "label": episode.label,
        "task": task,
        "attempt": attempt,
        "options": episode.environment.get("options", {}),
        "score": 0.0 if is_broken else episode.score,
        "success": int(episode.success and not is_broken),
        "length": len(actions),
        "illegal": sum(not turn["action_is_valid"] for turn in episode.turns),
        "actions": actions,
    }


def _transcript(episode: LoggedEpisode, row: Content) -> Content:
    names = ("env", "label", "task", "attempt", "seed", "success", "score")
    about = {"instructions": episode.instructions} if episode.instructions else {}
    turns = [dict(turn) for turn in episode.turns]
    return {**{name: row[name] for name in names}, **about, "turns": turns} | {
        "final_observation": episode.final_observation
    }


def _config(log: Log, rows: Sequence[Content]) -> Content:
    environments = []
    for label in dict.fromkeys(row["label"] for row in rows):
        known = next((each.environment for each in log.episodes if each.label == label), {})
        seeds = {row["task"]: row["seed"] for row in rows if row["label"] == label}
        own = {"label": label, "env": "", "options": {}, "wrappers": [], "ruleset_hash": ""}
        environments.append({**own, **known, "seeds": [seeds[task] for task in sorted(seeds)]})
    return {
        "suite": {"name": log.suite, "version": log.version, "metric": log.metric, "protocol": ""},
        "environments": environments,
        "repeats": max(row["attempt"] for row in rows) + 1,
        "agent": log.agent,
        "sampling": {},
        "prompt_hash": "",
        "execution": {},
        "hardware": {},
        "packages": {},
    }


def _metadata(log: Log, started: str) -> Content:
    return {
        "name": log.agent[:200],
        "date": started[:10],
        "started": started,
        "finished": started,
        "models": {"player_0": {"id": log.agent, "revision": None}},
    }


def _results(log: Log, rows: Sequence[Content]) -> Content:
    found = {
        label: summarise_records("", [row for row in rows if row["label"] == label])
        for label in dict.fromkeys(row["label"] for row in rows)
    }
    return {
        "suite": log.suite,
        "version": log.version,
        "metric": log.metric,
        "environments": {label: metrics(each) for label, each in found.items()},
        "mean": as_json(equal_weight_mean([getattr(each, log.metric) for each in found.values()])),
        "repeats": max(row["attempt"] for row in rows) + 1,
        "complete": True,
        "usage": total(each.usage for each in log.episodes).as_json(),
    }
