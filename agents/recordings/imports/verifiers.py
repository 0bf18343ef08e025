"""Episodes of verifiers 0.4: ``traces.jsonl``, one line an episode, or the folder that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turngym.agents.recordings.imports import IMPORTS, Import, Log, LoggedEpisode
from turngym.agents.recordings.imports.messages import rewards_of, sampled, turns_of
from turngym.storage.bounded import read_lines

_FILE = "traces.jsonl"


def _file(path: Path) -> Path:
    return path / _FILE if path.is_dir() else path


def _matches(path: Path) -> bool:
    return _file(path).name == _FILE and _file(path).is_file()


def _read(path: Path) -> Log:
    episodes = [episode for line in read_lines(_file(path)) for episode in _episodes(line)]
    return Log(path.resolve().parent.name if path.name == _FILE else path.name, "verifiers", episodes, "score")


def _episodes(line: Mapping[str, Any]) -> Iterator[LoggedEpisode]:
    """Yield an episode for each trace of a line."""
    errors = line.get("errors") or []
    fault = "" if line.get("ok", True) else str(errors[0] if errors else "the episode failed")[:500]
    for trace in line.get("traces") or ():
        score = rewards_of(trace.get("rewards") or {})
        nodes = trace["nodes"]
        turns, rules, last = turns_of([node["message"] for node in nodes], score)
        written = [node for node in nodes if node["message"]["role"] == "assistant"]
        for turn, node in zip(turns, written, strict=True):
            turn |= sampled(node.get("token_ids") or (), node.get("mask") or (), node.get("logprobs") or ())
        yield LoggedEpisode(_task(line.get("task")), turns, score >= 1, score, rules, last, fault=fault)


def _task(task: Any) -> str:
    """Return a name for a task: its id, name or index, or all that is known of it."""
    data = task.get("data", task) if isinstance(task, dict) else task
    if isinstance(data, dict):
        known = next((data[name] for name in ("id", "name", "idx", "index", "example_id") if name in data), None)
        data = json.dumps(data, sort_keys=True) if known is None else known
    return str(data)[:1000]


IMPORTS.register("verifiers")(Import(_matches, _read))
