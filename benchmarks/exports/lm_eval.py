"""The files of lm-evaluation-harness: ``results_<date>.json``, and ``samples_<task>_<date>.jsonl`` for each one.

A suite is a group whose tasks are its environments. Metrics keep their names, under the filter ``none``; standard
errors are those of ``results.json``. An attempt at a task of an environment is a document of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from turngym.agents.recordings.submission import Submission
from turngym.benchmarks.exports import EXPORTS, digest, episodes, numbers
from turngym.benchmarks.exports.source import Content, Source, plain, shown
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic

_FILTER = "none"
_SCORES = {"success": "success", "score": "score", "returns": "return"}


@EXPORTS.register("lm-eval")
def export_lm_eval(source: Source, out: Path) -> list[Path]:
    """Write results and samples as lm-evaluation-harness does: into a folder named after the model.

    Args:
        source: Folder of an evaluation.
        out: A folder, like the harness's ``--output_path``.

    Raises:
        ConfigError: It is a file.
    """
    if out.is_file() or out.suffix in (".json", ".jsonl"):
        raise ConfigError(f"lm-eval has a file for each environment: pass a folder, got {str(out)!r}.")
    submission = source.submission
    name = re.sub(r'["<>:/|\\?*\[\]]+', "__", plain(submission.config["agent"])).lstrip(".")
    folder = out / (name or "model")
    date = datetime.fromisoformat(submission.metadata["started"]).replace(tzinfo=None).isoformat().replace(":", "-")
    samples = {task_name(label): list(rows) for label, rows in _sample_rows(submission).items()}
    results = content(submission)
    results["task_hashes"] = {
        name: digest([row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows])
        for name, rows in samples.items()
    }
    files = [folder / f"results_{date}.json"]
    write_atomic(files[0], json.dumps(results, indent=2, ensure_ascii=False))
    for name, rows in samples.items():
        files.append(folder / f"samples_{name}_{date}.jsonl")
        write_atomic(files[-1], "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return files


def task_name(label: str) -> str:
    """Return the name of an environment as one of a task, as file names can hold it.

    >>> task_name("turngym/FrozenLake-v0 size=8")
    'turngym_FrozenLake-v0_size=8'
    """
    return re.sub(r"[^\w.=-]+", "_", label)


def content(submission: Submission) -> Content:
    """Return the content of the results file, but for the hashes of the tasks."""
    config, metadata, told = submission.config, submission.metadata, submission.results
    suite, sampling = config["suite"], config["sampling"]
    labels = [environment["label"] for environment in config["environments"]]
    tasks = {task_name(label): label for label in labels}
    found: dict[str, Content] = {name: {"alias": label, "name": name} for name, label in tasks.items()}
    higher: dict[str, dict[str, bool]] = {name: {} for name in tasks}
    for label, metric, number in numbers(submission):
        name = task_name(label)
        found[name] |= _with_error(metric, number)
        higher[name][metric] = bool(number.get("higher_is_better", True))
    counts = {name: sum(row["label"] == label for row in submission.episodes) for name, label in tasks.items()}
    for name, count in counts.items():
        found[name]["sample_len"] = count
    group = _group(suite, told["mean"], sum(counts.values())) if len(labels) > 1 else {}
    began, ended = (datetime.fromisoformat(metadata[key]).timestamp() for key in ("started", "finished"))
    return {
        "results": {**group, **found},
        **({"groups": group} if group else {}),
        "group_subtasks": {suite["name"]: list(tasks)} if group else {name: [] for name in tasks},
        "configs": {name: _task_config(submission, label, name) for name, label in tasks.items()},
        "versions": dict.fromkeys([*group, *tasks], float(suite["version"])),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {**{name: {suite["metric"]: True} for name in group}, **higher},
        "n-samples": {name: {"original": count, "effective": count} for name, count in counts.items()},
        "config": {
            "model": plain(config["agent"]),
            "model_args": None,
            "batch_size": None,
            "bootstrap_iters": 1000,
            "gen_kwargs": {key: sampling.get(key) for key in ("temperature", "top_p", "max_new_tokens")},
            "random_seed": sampling.get("seed", 0),
        },
        "git_hash": "",
        "date": began,
        "model_source": "turngym",
        "model_name": plain(config["agent"]),
        "start_time": began,
        "end_time": ended,
        "total_evaluation_time_seconds": str(ended - began),
    }


def _with_error(metric: str, number: Mapping[str, Any]) -> Content:
    """Return value and standard error, if there is one, under the harness's keys."""
    value, stderr = float(number["value"]), number.get("stderr")
    error = {f"{metric}_stderr,{_FILTER}": float(stderr)} if isinstance(stderr, int | float) else {}
    return {f"{metric},{_FILTER}": value, **error}


def _group(suite: Mapping[str, Any], mean: Mapping[str, Any], count: int) -> dict[str, Content]:
    if not isinstance(mean.get("value"), int | float):
        return {}
    name = suite["name"]
    return {name: {"alias": name, "name": name, "sample_len": count, **_with_error(suite["metric"], mean)}}


def _task_config(submission: Submission, label: str, name: str) -> Content:
    environment = next(each for each in submission.config["environments"] if each["label"] == label)
    return {
        "task": name,
        "dataset_path": environment["env"],
        "dataset_kwargs": json.dumps(environment["options"], sort_keys=True),
        "output_type": "generate_until",
        "description": plain(submission.config["suite"]["protocol"]),
        "ruleset_hash": environment["ruleset_hash"],
        "prompt_hash": submission.config["prompt_hash"],
    }


def _sample_rows(submission: Submission) -> dict[str, list[Content]]:
    """Return label -> the samples of that environment."""
    found: dict[str, list[Content]] = {each["label"]: [] for each in submission.config["environments"]}
    for row, turns, _ in episodes(submission):
        found[row["label"]].append(_sample(row, turns, len(found[row["label"]])))
    return found


def _sample(row: Mapping[str, Any], turns: Any, number: int) -> Content:
    """Return one episode as a document: its first observation is the prompt, and each turn is a response."""
    keys = ("env", "seed", "instance", "block_id", "task", "attempt", "length", "status")
    doc = {key: row[key] for key in keys}
    prompt = shown(turns[0]["observation"]) if turns else ""
    said = [plain(turn["completion"] or turn["action"]) for turn in turns]
    return {
        "doc_id": number,
        "doc": doc,
        "target": "",
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": "{}"}},
        "resps": [said],
        "filtered_resps": said[-1:],
        "filter": _FILTER,
        "metrics": list(_SCORES.values()),
        "doc_hash": digest(doc),
        "prompt_hash": digest(prompt),
        "target_hash": digest(""),
        **{name: float(row[key]) for key, name in _SCORES.items()},
    }
