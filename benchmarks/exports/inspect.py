"""The log of Inspect AI (inspect_ai.log, version 2): ``.json``, or ``.eval``, which is a zip of the same parts.

A suite is one task. A sample is one task of an environment, an epoch is an attempt at it, and its scores are success,
score and return. ``results`` repeats the numbers of ``results.json``: for each environment under its label, and under
``all`` the mean with equal weight for each environment.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.agents.recordings.submission import Submission
from turngym.arithmetic import float_sum
from turngym.benchmarks.exports import EXPORTS, digest, episodes, numbers
from turngym.benchmarks.exports.source import Content, Source, plain, shown
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic

_VERSION = 2
_SCORES = {"success": "success", "score": "score", "returns": "return"}
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


@EXPORTS.register("inspect")
def export_inspect(source: Source, out: Path) -> list[Path]:
    """Write a log of Inspect AI.

    Args:
        source: Folder of an evaluation.
        out: A file that ends with ``.json`` or ``.eval``.

    Raises:
        ConfigError: It ends otherwise.
    """
    if out.suffix not in (".json", ".eval"):
        raise ConfigError(f"a log of Inspect AI is a file that ends with .json or .eval, got {str(out)!r}.")
    submission = source.submission
    log, samples = header(submission), list(map_samples(submission))
    if out.suffix == ".json":
        write_atomic(out, json.dumps({**log, "samples": samples}, indent=1))
    else:
        _write_zip(out, log, samples)
    return [out]


def _write_zip(out: Path, log: Content, samples: Sequence[Content]) -> None:
    """Write the parts of a log as an ``.eval`` file; equal parts give equal bytes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.tmp")
    parts: dict[str, Any] = {
        "_journal/start.json": {"version": _VERSION, "eval": log["eval"], "plan": log["plan"]},
        **{f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in samples},
        "summaries.json": list(map(_summary, samples)),
        "header.json": log,
    }
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(zipfile.ZipInfo(name, _FIXED_TIME), json.dumps(content), zipfile.ZIP_DEFLATED)
    temporary.replace(out)


def header(submission: Submission) -> Content:
    """Return everything of a log but its samples."""
    metadata, results = submission.metadata, submission.results
    agent = plain(submission.config["agent"])
    return {
        "version": _VERSION,
        "status": "success" if results["complete"] else "cancelled",
        "eval": _spec(submission),
        "plan": {"name": "plan", "steps": [{"solver": "turngym", "params": {"agent": agent}}]},
        "results": _results(submission),
        "stats": {
            "started_at": metadata["started"],
            "completed_at": metadata["finished"],
            "model_usage": {agent: _usage(results["usage"])},
        },
        "error": None,
    }


def _spec(submission: Submission) -> Content:
    config, metadata = submission.config, submission.metadata
    suite, name = config["suite"], digest([config, metadata])[:22]
    ids = list(dict.fromkeys(_sample_id(row) for row, _, _ in episodes(submission)))
    sampling = config["sampling"]
    return {
        "eval_id": name,
        "run_id": name,
        "created": metadata["started"],
        "task": suite["name"],
        "task_id": name,
        "task_version": suite["version"],
        "task_args": {"suite": suite["name"]},
        "dataset": {"name": suite["name"], "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": plain(config["agent"]),
        "model_generate_config": {
            "temperature": sampling.get("temperature"),
            "top_p": sampling.get("top_p"),
            "max_tokens": sampling.get("max_new_tokens"),
            "seed": sampling.get("seed"),
        },
        "model_args": {},
        "config": {"epochs": config["repeats"], "epochs_reducer": ["mean"]},
        "packages": {str(key): str(value) for key, value in config["packages"].items()},
        "metadata": {
            "protocol": suite["protocol"],
            "prompt_hash": config["prompt_hash"],
            "environments": config["environments"],
            "hardware": config["hardware"],
            **({"style": config["style"]} if "style" in config else {}),
            **({"verifier": config["verifier"]} if "verifier" in config else {}),
            "submission": dict(metadata),
        },
        "scorers": [{"name": score} for score in _SCORES.values()],
    }


def _results(submission: Submission) -> Content:
    tables: dict[str, dict[str, Mapping[str, Any]]] = {}
    for label, metric, number in numbers(submission):
        tables.setdefault(metric, {})[label] = number
    mean, metric = submission.results["mean"], submission.config["suite"]["metric"]
    scores = [_score(name, table, mean if name == metric else None) for name, table in tables.items()]
    count = len(submission.episodes)
    return {"total_samples": count, "completed_samples": count, "scores": scores}


def _score(name: str, table: Mapping[str, Mapping[str, Any]], mean: Mapping[str, Any] | None) -> Content:
    """Return a metric of all environments, and its mean with equal weights."""
    metrics: dict[str, Content] = {}

    def add(label: str, value: float, stderr: Any, more: Mapping[str, Any]) -> None:
        metrics[label] = {"name": label, "group": "mean", "value": value, "metadata": dict(more)}
        if isinstance(stderr, int | float):
            metrics[f"{label} stderr"] = {"name": label, "group": "stderr", "value": stderr}

    for label, number in table.items():
        add(label, number["value"], number.get("stderr"), number)
    errors = [number.get("stderr") for number in table.values()]
    if mean is not None:
        add("all", mean["value"], mean["stderr"], mean)
    else:
        known = [error for error in errors if isinstance(error, int | float)]
        stderr = math.sqrt(float_sum(error**2 for error in known)) / len(errors) if len(known) == len(errors) else None
        add("all", sum(number["value"] for number in table.values()) / len(table), stderr, {})
    return {"name": name, "scorer": "turngym", "metrics": metrics}


def map_samples(submission: Submission) -> Iterator[Content]:
    """Yield a sample for each episode."""
    agent = plain(submission.config["agent"])
    for row, turns, last in episodes(submission):
        messages: list[Content] = []
        for turn in turns:
            messages += [
                {"role": "user", "content": shown(turn["observation"])},
                {"role": "assistant", "content": plain(turn["completion"] or turn["action"]), "source": "generate"},
            ]
        answer = messages[-1]["content"] if messages else ""
        messages += [{"role": "user", "content": last}] if last else []
        yield {
            "id": _sample_id(row),
            "epoch": row["attempt"] + 1,
            "input": messages[0]["content"] if messages else "",
            "target": "",
            "messages": [{"id": f"{number}", **message} for number, message in enumerate(messages)],
            "output": {"model": agent, "choices": [_choice(answer)], "completion": answer},
            "scores": {
                name: {"value": row[key], "answer": plain(row["actions"][-1]) if row["actions"] else None}
                for key, name in _SCORES.items()
            },
            "metadata": _metadata(row),
            "store": {},
            "events": [],
            "model_usage": {agent: _usage(next(iter(row["seats"].values()), {}))},
            "error": _error(row),
            "turn_count": row["length"],
        }


def _sample_id(row: Mapping[str, Any]) -> str:
    return f"{row['label']}:{row['task']}"


def _choice(answer: str) -> Content:
    return {"message": {"role": "assistant", "content": answer, "source": "generate"}, "stop_reason": "stop"}


def _metadata(row: Mapping[str, Any]) -> Content:
    keys = ("label", "env", "options", "seed", "instance", "block_id", "length", "illegal", "terminated", "truncated")
    more = {key: row[key] for key in (*keys, "status", "transcript_sha256")}
    return {**more, **({"verifier": row["verifier"]} if "verifier" in row else {})}


def _error(row: Mapping[str, Any]) -> Content | None:
    if row["status"] != "env_error":
        return None
    return {"message": plain(row["fault"]), "traceback": "", "traceback_ansi": ""}


def _usage(used: Mapping[str, Any]) -> Content:
    read, written = (int(used.get(key) or 0) for key in ("tokens_in", "tokens_out"))
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "total_cost": used.get("cost"),
    }


def _summary(sample: Mapping[str, Any]) -> Content:
    keys = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "turn_count")
    error = sample["error"]
    return {
        **{key: sample[key] for key in keys},
        "error": None if error is None else error["message"],
        "completed": True,
        "message_count": len(sample["messages"]),
    }
