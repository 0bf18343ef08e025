"""Reading a submission folder, with everything in it that is malformed.

Nothing that the files say is executed or imported: names of environments, wrappers and suites are looked up among those
that are registered already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from turngym.agents.recordings.shapes import NUMBER, Kinds, MalformedData, are_texts, is_kind, shape, usage_problem
from turngym.columns import LONGEST_NAME
from turngym.errors import ConfigError
from turngym.storage.bounded import MOST_EPISODES, read_json, read_lines
from turngym.storage.folders import is_folder
from turngym.types import StrPath

REQUIRED = ("metadata.json", "config.json", "results.json", "episodes.jsonl")
TRANSCRIPTS, BASELINES = "transcripts.jsonl", "baselines.jsonl"
METRICS = ("success", "score")
_MOST_ENVIRONMENTS, _LONGEST_NAME, _LARGEST_METADATA = 1_000, 200, 100_000
_MOST_OUTCOMES = 1_000
STATUSES = ("ok", "agent_error", "env_error")
_EPISODE_STATUSES = (*STATUSES, "context")

_METADATA: Kinds = {"name": str, "date": str, "started": str, "finished": str, "models": dict}
_CONFIG: Kinds = {
    "suite": dict,
    "environments": list,
    "repeats": int,
    "agent": str,
    "sampling": dict,
    "prompt_hash": str,
    "execution": dict,
    "hardware": dict,
    "packages": dict,
}
_SUITE: Kinds = {"name": str, "version": int, "metric": str, "protocol": str}
_ENVIRONMENT: Kinds = {
    "label": str,
    "env": str,
    "options": dict,
    "wrappers": list,
    "ruleset_hash": str,
    "seeds": list,
}
_RESULTS: Kinds = {
    "suite": str,
    "version": int,
    "metric": str,
    "environments": dict,
    "mean": dict,
    "repeats": int,
    "complete": bool,
    "usage": dict,
}
_EPISODE: Kinds = {
    "label": str,
    "task": int,
    "attempt": int,
    "env": str,
    "env_version": str,
    "options": dict,
    "ruleset_hash": str,
    "seed": int,
    "block_id": str,
    "instance": str,
    "returns": NUMBER,
    "score": NUMBER,
    "success": int,
    "length": int,
    "terminated": bool,
    "truncated": bool,
    "illegal": int,
    "actions": list,
    "transcript_sha256": str,
    "status": str,
    "fault": str,
    "seats": dict,
    "seat_map": dict,
    "started": str,
}
_STATE: Kinds = {"task": int, "attempt": int, "turn": int, "sha256": str}
_TRANSCRIPT: Kinds = {
    "label": str,
    "task": int,
    "attempt": int,
    "env": str,
    "seed": int,
    "success": int,
    "score": NUMBER,
    "turns": list,
}
_TURN: Kinds = {"completion": str, "action": str, "reward": NUMBER, "action_is_valid": bool}
_NOTE: Kinds = {"purpose": str, "text": str}


@dataclass(frozen=True)
class Submission:
    """Contents of a submission folder.

    Args:
        path: The folder.
        metadata: Agent and time.
        config: Requested environments.
        results: The numbers.
        episodes: One record an episode.
        transcripts: Every turn of each episode; None where the folder has none.
        baselines: Name of a baseline -> records of its episodes on the same tasks.
    """

    path: Path
    metadata: Mapping[str, Any]
    config: Mapping[str, Any]
    results: Mapping[str, Any]
    episodes: tuple[Mapping[str, Any], ...]
    transcripts: tuple[Mapping[str, Any], ...] | None
    baselines: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def of(self, label: str) -> list[Mapping[str, Any]]:
        """Return the episodes of one environment: task by task, and attempt by attempt."""
        return in_order(self.episodes, label)


def in_order(rows: Iterable[Mapping[str, Any]], label: str) -> list[Mapping[str, Any]]:
    """Return the records of one environment: task by task, and attempt by attempt."""
    return sorted((row for row in rows if row["label"] == label), key=key_of)


def key_of(row: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return which episode of the evaluation a record or a transcript is of."""
    return row["label"], row["task"], row["attempt"]


def read_submission(path: Path) -> tuple[Submission | None, list[MalformedData]]:
    """Return the folder's content, or None with all that is wrong with its shape.

    Raises:
        ConfigError: There is no such folder, or it is one of another kind.
    """
    _require_submission(path)
    problems: list[MalformedData] = []
    found: dict[str, Any] = {}
    for name in (*REQUIRED, TRANSCRIPTS, BASELINES):
        try:
            found[name] = read_lines(path / name) if name.endswith(".jsonl") else read_json(path / name)
        except FileNotFoundError:
            if name in REQUIRED:
                hint = ", as the evaluation has not ended: --resume continues it" if name == "results.json" else ""
                problems.append(MalformedData(name, f"the file is missing{hint}"))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(MalformedData(name, f"the file is not JSON that can be read: {error}"))
    if not problems:
        problems = list(_problems(found))
    if problems:
        return None, problems
    metadata, config, results, episodes = (found[name] for name in REQUIRED)
    transcripts = tuple(found[TRANSCRIPTS]) if TRANSCRIPTS in found else None
    baselines: dict[str, list[Mapping[str, Any]]] = {}
    for row in found.get(BASELINES, ()):
        baselines.setdefault(row["player"], []).append(row)
    return Submission(path, metadata, config, results, tuple(episodes), transcripts, baselines), []


def load_submission(path: StrPath) -> Submission:
    """Return the folder's content.

    Raises:
        ConfigError: There is no such folder, or it has not the right shape.
    """
    submission, problems = read_submission(Path(path))
    if submission is None:
        first = problems[0]
        raise ConfigError(
            f"{path} is not a sound submission ({first.place}: {first.message}): `turngym verify {path}` shows all."
        )
    return submission


def _require_submission(path: Path) -> None:
    if not is_folder(path):
        raise ConfigError(f"there is no folder {path}: pass the one that `turngym eval ... --out FOLDER` wrote.")
    if not any((path / name).exists() for name in REQUIRED):
        inner = min(path.glob("*/episodes.jsonl"), default=None)
        hint = f" It has some in it: pass one, such as {inner.parent}." if inner else ""
        raise ConfigError(f"{path} is not a submission: `turngym eval ... --out FOLDER` writes one.{hint}")
    try:
        config = read_json(path / "config.json")
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(config, dict) and "pairing" in config:
        raise ConfigError(f"{path} is the folder of a tournament; only those of `turngym eval` are submissions.")


def _problems(found: Mapping[str, Any]) -> Iterator[MalformedData]:
    """Yield what has not the right shape, outer things first."""
    metadata, config, results, episodes = (found[name] for name in REQUIRED)
    yield from _metadata_problems(metadata)
    bad = list(shape(config, _CONFIG, "config.json"))
    yield from bad
    if not bad:
        yield from shape(config["suite"], _SUITE, "config.json, suite")
        if config["suite"].get("metric") not in METRICS:
            yield MalformedData("config.json, suite", f"metric must be one of {', '.join(METRICS)}")
        if not is_kind(config["sampling"].get("seed", 0), int):
            message = f"seed must be a whole number, got {str(config['sampling']['seed'])[:60]!r}"
            yield MalformedData("config.json, sampling", message)
        if not config["environments"] or config["repeats"] < 1:
            yield MalformedData("config.json", "it needs at least one environment, and repeats of at least 1")
        for number, each in enumerate(config["environments"]):
            place = f"config.json, environment {number}"
            wrong = list(shape(each, _ENVIRONMENT, place))
            yield from wrong
            if not wrong and not all(is_kind(seed, int) and seed >= 0 for seed in each["seeds"]):
                yield MalformedData(place, "seeds must be whole numbers of at least 0")
        yield from _size_problems(config)
    yield from shape(results, _RESULTS, "results.json")
    for number, row in enumerate(episodes, 1):
        yield from _episode_problems(row, f"episodes.jsonl, line {number}")
    names = {name for row in (*episodes, *found.get(BASELINES, ())) if isinstance(row, dict) for name in _outcomes(row)}
    if len(names) > _MOST_OUTCOMES or any(len(name) > LONGEST_NAME for name in names):
        message = f"outcomes may have {_MOST_OUTCOMES} names of {LONGEST_NAME} characters in all, got {len(names):,}"
        yield MalformedData("episodes.jsonl", message)
    for number, row in enumerate(found.get(BASELINES, ()), 1):
        place = f"{BASELINES}, line {number}"
        yield from _episode_problems(row, place)
        if isinstance(row, dict):
            yield from shape(row, {"player": str}, place)
    for number, row in enumerate(found.get(TRANSCRIPTS, ()), 1):
        yield from _transcript_problems(row, f"{TRANSCRIPTS}, line {number}")


def _outcomes(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("outcomes")
    return found if isinstance(found, dict) else {}


def _metadata_problems(metadata: Any) -> Iterator[MalformedData]:
    place = "metadata.json"
    wrong = list(shape(metadata, _METADATA, place))
    yield from wrong
    if wrong:
        return
    if len(metadata["name"]) > _LONGEST_NAME:
        yield MalformedData(place, f"name has {len(metadata['name']):,} characters, at most {_LONGEST_NAME} are shown")
    size = len(json.dumps(metadata))
    if size > _LARGEST_METADATA:
        yield MalformedData(place, f"it holds {size:,} characters, more than the {_LARGEST_METADATA:,} allowed")
    if moment(metadata["date"]) is None:
        yield MalformedData(place, f"date must be a date such as 2026-01-31, got {metadata['date'][:60]!r}")
    order = [name for name in ("started", "played", "finished") if name in metadata]
    times = [moment(metadata[name]) for name in order]
    for name, time in zip(order, times, strict=True):
        if time is None:
            yield MalformedData(place, f"{name} must be a time in ISO format, got {str(metadata[name])[:60]!r}")
    known = [time for time in times if time is not None]
    if sorted(known) != known:
        yield MalformedData(place, f"{', '.join(order)} are not in this order: {[metadata[name] for name in order]}")


def moment(text: Any) -> datetime | None:
    """Return a date or time in ISO format, in UTC unless it says otherwise; None if it is none.

    >>> moment("2026-01-31T10:00:00").isoformat(), moment("2199-13-45")
    ('2026-01-31T10:00:00+00:00', None)
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _size_problems(config: Mapping[str, Any]) -> Iterator[MalformedData]:
    tables = [each for each in config["environments"] if isinstance(each, dict) and isinstance(each.get("seeds"), list)]
    asked, environments = sum(len(each["seeds"]) for each in tables) * config["repeats"], len(config["environments"])
    if asked > MOST_EPISODES or environments > _MOST_ENVIRONMENTS:
        message = f"it asks for {asked:,} episodes of {environments:,} environments"
        yield MalformedData(
            "config.json", f"{message}, more than the {MOST_EPISODES:,} and {_MOST_ENVIRONMENTS:,} allowed"
        )


def _episode_problems(row: Any, place: str) -> Iterator[MalformedData]:
    wrong = list(shape(row, _EPISODE, place))
    yield from wrong
    if wrong:
        return
    if row["success"] not in (0, 1):
        yield MalformedData(place, f"success must be 0 or 1, got {row['success']}")
    if row["seed"] < 0:
        yield MalformedData(place, f"seed must be at least 0, got {row['seed']}")
    if not 0 <= row["illegal"] <= row["length"]:
        yield MalformedData(place, f"illegal must be in 0 to length, {row['length']}, got {row['illegal']}")
    if not all(isinstance(seat, dict) for seat in row["seats"].values()):
        yield MalformedData(place, "seats must be tables of names and values")
    elif problem := next(filter(None, map(usage_problem, row["seats"].values())), ""):
        yield MalformedData(f"{place}, seats", problem)
    if row["status"] == "env_error" and (row["success"] or row["score"] or row["returns"] > 0 or row["terminated"]):
        message = f"success {row['success']}, score {row['score']}, return {row['returns']}"
        yield MalformedData(place, f"it broke, so it has success 0, score 0 and a return of 0 at most, got {message}")
    if row["status"] not in _EPISODE_STATUSES:
        yield MalformedData(place, f"status must be one of {', '.join(_EPISODE_STATUSES)}, got {row['status']!r}")
    if "verifier" in row and not _is_verdict(row["verifier"]):
        yield MalformedData(place, "verifier must have a score, a number or null, and what was used, no number below 0")
    if not isinstance(row.get("in_order", True), bool):
        yield MalformedData(place, f"in_order must be true or false, got {str(row['in_order'])[:60]!r}")
    outcomes = row.get("outcomes", {})
    if not isinstance(outcomes, dict) or not all(is_kind(each, NUMBER) for each in outcomes.values()):
        yield MalformedData(place, "outcomes must be a table of names and numbers")
    elif outcomes and row["status"] == "env_error":
        yield MalformedData(place, f"it broke, so it has no outcomes, got {', '.join(outcomes)[:60]!r}")
    if "state" in row:
        yield from shape(row["state"], _STATE, f"{place}, state")
    if not all(isinstance(action, str) for action in row["actions"]):
        yield MalformedData(place, "actions must be strings")


def _is_verdict(told: Any) -> bool:
    if not isinstance(told, dict) or not isinstance(told.get("usage"), dict) or usage_problem(told["usage"]):
        return False
    return told.get("score") is None or is_kind(told["score"], NUMBER)


def _transcript_problems(row: Any, place: str) -> Iterator[MalformedData]:
    wrong = list(shape(row, _TRANSCRIPT, place))
    yield from wrong
    for number, turn in enumerate([] if wrong else row["turns"], 1):
        yield from shape(turn, _TURN, f"{place}, turn {number}")
        notes = turn.get("notes", []) if isinstance(turn, dict) else []
        if not isinstance(notes, list) or any(list(shape(note, _NOTE, "")) for note in notes):
            yield MalformedData(f"{place}, turn {number}", "notes must have a purpose and a text each")
        if isinstance(turn, dict) and not are_texts(turn.get("images", [])):
            yield MalformedData(f"{place}, turn {number}", "images must be a list of strings")
        if isinstance(turn, dict) and "observation" not in turn:
            yield MalformedData(f"{place}, turn {number}", "it has no 'observation'")
