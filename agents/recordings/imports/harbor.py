"""Job folders of Harbor: a folder for each trial with ``result.json``, and the trajectory that its agent wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from turngym.agents.recordings.imports import IMPORTS, Import, Log, LoggedEpisode
from turngym.agents.recordings.imports.atif import episode_of
from turngym.agents.recordings.imports.messages import rewards_of
from turngym.agents.usage import Usage
from turngym.errors import ConfigError
from turngym.storage.bounded import read_json

_RESULT, _TRAJECTORY = "result.json", Path("agent") / "trajectory.json"
_MOST_TRIALS = 10_000


def _trials(path: Path) -> Iterator[Path]:
    """Yield the folders of trials, links left out."""
    if not path.is_dir() or path.is_symlink():
        return
    for each in sorted(path.iterdir()):
        if each.is_dir() and not each.is_symlink() and _is_plain(each / _RESULT):
            yield each


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def _matches(path: Path) -> bool:
    return any((each / "config.json").exists() or (each / "agent").exists() for each in _trials(path))


def _read(path: Path) -> Log:
    trials = list(_trials(path))
    if len(trials) > _MOST_TRIALS:
        raise ConfigError(f"{path} has {len(trials):,} trials, more than the {_MOST_TRIALS:,} that are read.")
    results = [read_json(each / _RESULT) for each in trials]
    found = [(each, result) for each, result in zip(trials, results, strict=True) if "task_name" in result]
    about = found[0][1].get("agent_info") or {}
    model = (about.get("model_info") or {}).get("name")
    agent = f"{about.get('name', 'agent')} {model}" if model else str(about.get("name", "agent"))
    source = str(found[0][1].get("source") or "Harbor")
    return Log(agent, source, [_episode(trial, result) for trial, result in found], "score")


def _episode(trial: Path, result: Mapping[str, Any]) -> LoggedEpisode:
    rewards = (result.get("verifier_result") or {}).get("rewards") or {}
    reward = float(rewards["reward"]) if "reward" in rewards else rewards_of(rewards) / max(len(rewards), 1)
    broken = result.get("exception_info") or {}
    fault = f"{broken.get('exception_type')}: {broken.get('exception_message')}"[:500] if broken and not rewards else ""
    task, used = str(result["task_name"]), _usage(result.get("agent_result") or {})
    file = trial / _TRAJECTORY
    if not _is_plain(file):
        return LoggedEpisode(task, [], reward >= 1, reward, usage=used, fault=fault)
    episode = episode_of(read_json(file), task, reward)
    plain = replace(episode, task=task, usage=used, fault=fault, label="tasks", record={}, environment={})
    return replace(plain, success=reward >= 1, score=reward)


def _usage(told: Mapping[str, Any]) -> Usage:
    counts = [int(told.get(f"n_{name}_tokens") or 0) for name in ("input", "output", "cache")]
    cost = told.get("cost_usd")
    return Usage(counts[0], counts[1], tokens_cached=counts[2], cost=None if cost is None else float(cost))


IMPORTS.register("harbor")(Import(_matches, _read))
