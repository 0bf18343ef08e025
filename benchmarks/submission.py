"""The folder that an evaluation leaves behind: everything needed to check and to repeat it.

``metadata.json`` (who and when), ``config.json`` (what was asked, with a hash of each environment's behaviour),
``episodes.jsonl`` (one line an episode), ``transcripts.jsonl`` (every turn), ``results.json`` (means with intervals).
``results.json`` is written last: a folder without it is not finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from turngym.agents.backends import AgentSettings
from turngym.agents.core import Agent
from turngym.agents.evaluate import EvaluationResult
from turngym.agents.intervals import Estimate
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.rulesets import ruleset_hash
from turngym.benchmarks.suites import SuiteEntry, SuiteResult
from turngym.errors import RunFolderExists
from turngym.files import write_atomic, write_json

_PACKAGES = ("turngym", "gymnasium", "numpy", "torch", "transformers")
_FORMAT = 1


@dataclass(frozen=True)
class Played:
    """An evaluation with what is needed to write it down.

    Args:
        result: What was found.
        seeds: The seeds of each entry.
        agent_name: How the agent was asked for.
        agent: The agent.
        settings: What it was made with.
        execution: How the episodes were run: vector backend, schedule and so on.
        started: When, in UTC.
        finished: When, in UTC.
        baselines: Results of other agents on the same tasks, by name.
    """

    result: SuiteResult
    seeds: Sequence[Sequence[int]]
    agent_name: str
    agent: Agent
    settings: AgentSettings
    execution: Mapping[str, Any]
    started: str
    finished: str
    baselines: Mapping[str, SuiteResult]


def require_free(path: Path) -> None:
    """Refuse a folder that already holds something.

    Raises:
        RunFolderExists: It exists and is no empty folder.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunFolderExists(f"{path} exists already and is not empty: pass another folder as --out.")


def write_submission(path: Path, played: Played) -> None:
    """Write the folder.

    Raises:
        RunFolderExists: It exists and is no empty folder.
    """
    require_free(path)
    entries = played.result.suite.entries
    hashes = [ruleset_hash(entry.env_id, entry.env_kwargs) for entry in entries]
    write_json(path / "metadata.json", metadata(played))
    write_json(path / "config.json", configuration(played, hashes))
    rows: list[dict[str, Any]] = []
    for entry, rules, result in zip(entries, hashes, played.result.results, strict=True):
        rows += [episode_row(record, entry, rules, played) for record in result.episodes]
    _write_lines(path / "episodes.jsonl", rows)
    _write_lines(path / "transcripts.jsonl", (transcript(t) for ts in played.result.trajectories for t in ts))
    write_json(path / "results.json", results(played))


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows))


def metadata(played: Played) -> dict[str, Any]:
    """Return who played and when; what only the author knows is left null, to be filled in by hand."""
    network = getattr(getattr(played.agent, "model", None), "network", None)
    return {
        "format": _FORMAT,
        "name": played.agent_name,
        "contact": None,
        "date": played.started[:10],
        "started": played.started,
        "finished": played.finished,
        "open_weights": None,
        "models": {"player_0": {"id": played.agent_name, "revision": None}},
        "parameters": None if network is None else sum(weight.numel() for weight in network.parameters()),
        "training_data": None,
        "trained_on_suite": None,
        "opponents": [],
    }


def configuration(played: Played, hashes: Sequence[str]) -> dict[str, Any]:
    """Return what was asked for."""
    suite, settings = played.result.suite, played.settings
    prompt = json.dumps([settings.format, settings.prompt], sort_keys=True)
    environments = [
        {
            "label": e.label,
            "env": e.env_id,
            "options": e.env_kwargs,
            "wrappers": list(e.wrappers),
            "ruleset_hash": rules,
            "seeds": list(seeds),
        }
        for e, rules, seeds in zip(suite.entries, hashes, played.seeds, strict=True)
    ]
    return {
        "suite": {
            "name": suite.name,
            "version": suite.version,
            "metric": suite.metric,
            "protocol": suite.protocol,
        },
        "environments": environments,
        "agent": played.agent_name,
        "sampling": asdict(settings),
        "prompt_hash": hashlib.sha256(prompt.encode()).hexdigest(),
        "retries_after_fault": 1,
        "execution": dict(played.execution),
        "hardware": {"machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count()},
        "packages": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def episode_row(record: Mapping[str, Any], entry: SuiteEntry, rules: str, played: Played) -> dict[str, Any]:
    """Return an episode's line: the record of the evaluation, the game it belongs to, and what each seat used."""
    seat = {key: record[key] for key in ("tokens_in", "tokens_out", "illegal")}
    return {
        **record,
        "env": entry.env_id,
        "env_version": entry.env_id.rpartition("-v")[2],
        "options": entry.env_kwargs,
        "label": entry.label,
        "ruleset_hash": rules,
        "seat_map": {"player_0": played.agent_name},
        "roles": {},
        "winner": None,
        "seats": {"player_0": {**seat, "calls": record["length"]}},
        "started": played.started,
    }


def transcript(trajectory: Trajectory) -> dict[str, Any]:
    """Return every turn of an episode, as a person would read it."""
    turns = [
        {
            "observation": turn.observation,
            "completion": turn.completion,
            "action": turn.action,
            "reward": turn.reward,
            "action_is_valid": turn.action_is_valid,
        }
        for turn in trajectory.turns
    ]
    return {
        "env": trajectory.env_id,
        "seed": trajectory.spec.seed,
        "success": int(trajectory.success == 1),
        "score": trajectory.score,
        "turns": turns,
        "final_observation": trajectory.final_observation,
    }


def results(played: Played) -> dict[str, Any]:
    """Return the numbers, those of the baselines beside them."""
    suite = played.result.suite
    content = {**_numbers(played.result), "suite": suite.name, "version": suite.version, "metric": suite.metric}
    if played.baselines:
        content["baselines"] = {name: _numbers(result) for name, result in played.baselines.items()}
        content["normalised"] = normalised(played)
    return content


def _numbers(result: SuiteResult) -> dict[str, Any]:
    environments = {
        entry.label: metrics(found) for entry, found in zip(result.suite.entries, result.results, strict=True)
    }
    return {"environments": environments, "mean": _estimate(result.mean, True)}


def metrics(result: EvaluationResult) -> dict[str, Any]:
    """Return metric -> number with its interval, for one environment."""
    turns = sum(record["length"] for record in result.episodes)
    return {
        "success": _estimate(result.success, True),
        "score": _estimate(result.score, True),
        "return": _estimate(result.reward_sum, True),
        "turns": _estimate(result.turns, False),
        "invalid_actions": {"value": result.invalid_actions, "n_turns": turns, "higher_is_better": False},
        "faults": {"value": result.faults, "n_games": len(result.episodes), "higher_is_better": False},
    }


def _estimate(estimate: Estimate, higher_is_better: bool) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "stderr": estimate.stderr,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "n_games": estimate.count,
        "n_blocks": estimate.blocks,
        "method": estimate.method,
        "higher_is_better": higher_is_better,
    }


def normalised(played: Played) -> dict[str, float]:
    """Return for each entry ``100 * (x - random) / (expert - random)``, where both baselines exist and differ."""
    if not {"random", "expert"} <= played.baselines.keys():
        return {}
    metric = played.result.suite.metric
    found = {}
    own = played.result
    low, high = played.baselines["random"], played.baselines["expert"]
    for entry, mine, random, expert in zip(own.suite.entries, own.results, low.results, high.results, strict=True):
        floor, top = getattr(random, metric).value, getattr(expert, metric).value
        if top != floor:
            found[entry.label] = 100 * (getattr(mine, metric).value - floor) / (top - floor)
    return found
