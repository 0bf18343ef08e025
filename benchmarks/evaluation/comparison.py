"""Comparison of two submissions on the same tasks, task by task: what ``turngym compare`` prints.

Tasks differ far more in difficulty than agents do, so the difference on each task is known much better than the
difference of two means. Attempts at one task count together; whole blocks of tasks are resampled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from turngym.agents.intervals import (
    FEWEST_BLOCKS,
    NO_SPREAD,
    TOO_FEW,
    Estimate,
    paired_difference,
    share_difference,
)
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.styles import PLAIN
from turngym.agents.recordings.submission import Submission, load_submission
from turngym.arithmetic import float_sum
from turngym.benchmarks.evaluation.imported import as_folder
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.records import Evaluation, configuration, metadata, results
from turngym.benchmarks.statistics.estimates import as_json, equal_weight_mean
from turngym.display import data_frame, html_table, html_text
from turngym.errors import ConfigError
from turngym.storage.files import path_of
from turngym.types import StrPath

METRICS = {"success": "success", "score": "score", "return": "returns", "turns": "length"}
"""Metric -> field of an episode."""
_LOWER_IS_BETTER = ("turns",)
_FEW = 20
_UNDECIDED = {
    TOO_FEW: f"an interval needs {FEWEST_BLOCKS} tasks",
    NO_SPREAD: "the difference is the same on all tasks, so how far it varies has not been seen",
}


@dataclass(frozen=True)
class Difference:
    """Difference of the second from the first side, in one environment or over all.

    Args:
        metrics: Metric -> mean difference, second minus first.
        first: Metric -> mean of the first side.
        second: Metric -> mean of the second side.
        gained: Tasks on which the second side does better by the suite's metric.
        lost: Tasks on which it does worse.
        equal: All other tasks.
    """

    metrics: Mapping[str, Estimate]
    first: Mapping[str, float]
    second: Mapping[str, float]
    gained: int
    lost: int
    equal: int

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        estimates = {
            name: as_json(estimate, name not in _LOWER_IS_BETTER)
            | ({"ci_low": None, "ci_high": None} if estimate.no_interval else {})
            for name, estimate in self.metrics.items()
        }
        tasks = {"gained": self.gained, "lost": self.lost, "equal": self.equal}
        return {"difference": estimates, "first": dict(self.first), "second": dict(self.second), "tasks": tasks}


@dataclass(frozen=True)
class Comparison:
    """A comparison of two submissions.

    Args:
        suite: Tasks that both played.
        metric: Metric.
        names: Names of the two.
        environments: Label -> difference.
        overall: The mean over the environments with equal weights.
        prompts: Setting of prompts -> its two values, where they differ.
    """

    suite: str
    metric: str
    names: tuple[str, str]
    environments: Mapping[str, Difference]
    overall: Difference
    prompts: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "suite": self.suite,
            "metric": self.metric,
            "first": self.names[0],
            "second": self.names[1],
            "environments": {label: found.as_json() for label, found in self.environments.items()},
            "overall": self.overall.as_json(),
            "prompts": {name: list(pair) for name, pair in self.prompts.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the differences as rows of a table, one for each environment and metric."""
        return [
            {
                "environment": label,
                "metric": metric,
                "first": found.first[metric],
                "second": found.second[metric],
                "difference": estimate.value,
                "low": None if estimate.no_interval else estimate.low,
                "high": None if estimate.no_interval else estimate.high,
            }
            for label, found in {**self.environments, "mean": self.overall}.items()
            for metric, estimate in found.metrics.items()
        ]

    def to_frame(self) -> Any:
        """Return the differences as a data frame of polars or pandas."""
        return data_frame(self.rows())

    def __str__(self) -> str:
        scale, unit = (100, " %") if self.metric == "success" else (1, "")
        lines = [f"{self.suite}: {self.metric}{unit} of {self.names[0]} and {self.names[1]}"]
        for row in (row for row in self.rows() if row["metric"] == self.metric):
            first, second, difference = (scale * row[name] for name in ("first", "second", "difference"))
            ends = "" if row["low"] is None else f" [{scale * row['low']:+.3g}, {scale * row['high']:+.3g}]"
            lines.append(f"  {row['environment']}: {first:.3g} and {second:.3g}, difference {difference:+.3g}{ends}")
        return "\n".join([*lines, verdict(self)])

    def _repr_html_(self) -> str:
        rows = [row for row in self.rows() if row["metric"] == self.metric]
        table = html_table(f"{self.suite}: {self.names[0]} and {self.names[1]}", rows)
        return table + html_text("", verdict(self))


def compare(first: Evaluation | Submission | StrPath, second: Evaluation | Submission | StrPath) -> Comparison:
    """Compare two evaluations, as returned, by folder or log, on the same tasks; differences are second minus first.

    Raises:
        ConfigError: They did not play the same tasks under the same rules, or a folder holds no valid submission.
    """
    first, second = map(_submission, (first, second))
    _require_same_tasks(first, second)
    metric = str(first.config["suite"]["metric"])
    environments = {
        each["label"]: _difference(first.of(each["label"]), second.of(each["label"]), metric)
        for each in first.config["environments"]
    }
    names = (str(first.metadata["name"]), str(second.metadata["name"]))
    overall = _overall(list(environments.values()))
    prompts = _prompt_differences(first, second)
    return Comparison(str(first.config["suite"]["name"]), metric, names, environments, overall, prompts)


def _submission(played: Evaluation | Submission | StrPath) -> Submission:
    """Return an evaluation with what its folder would hold."""
    if isinstance(played, Submission):
        return played
    if not isinstance(played, Evaluation):
        path = path_of(played, "each side, unless it is what turngym.evaluate returned,")
        with as_folder(path) as folder:
            return dataclasses.replace(load_submission(folder), path=path)
    found = played.result
    rows = tuple(row for each in found.results for row in each.episodes)
    rules = {row["label"]: row["ruleset_hash"] for row in rows}
    config = configuration(
        Plan(found.suite, tuple(map(tuple, played.seeds)), played.repeats),
        played.agent_name,
        played.agent,
        played.settings,
        played.execution,
        [rules.get(entry.label, "") for entry in found.suite.entries],
    )
    about = metadata(played.agent_name, played.agent, played.started)
    return Submission(Path(played.agent_name), about, config, results(played), rows, None)


def _require_same_tasks(first: Submission, second: Submission) -> None:
    """Refuse submissions whose tasks or rules differ.

    Raises:
        ConfigError: They differ; the message says in what, and how to get two that do not.
    """
    mine, theirs = first.config["suite"], second.config["suite"]
    for key in ("name", "version", "metric"):
        if mine[key] != theirs[key]:
            raise _refusal(first, second, f"the {key} of the suite is {mine[key]!r} there and {theirs[key]!r} here")
    ours = {each["label"]: each for each in first.config["environments"]}
    other = {each["label"]: each for each in second.config["environments"]}
    if ours.keys() != other.keys():
        label = sorted(ours.keys() ^ other.keys())[0]
        raise _refusal(first, second, f"only {(first if label in ours else second).path} has {label}")
    for label, each in ours.items():
        if each["ruleset_hash"] != other[label]["ruleset_hash"]:
            raise _refusal(first, second, f"{label} had other rules (its ruleset hash differs)")
        tasks = [set(map(_task_of, side.of(label))) for side in (first, second)]
        if tasks[0] != tasks[1]:
            counts = f"{len(tasks[0])} and {len(tasks[1])} tasks, {len(tasks[0] & tasks[1])} of them the same"
            raise _refusal(first, second, f"{label} has {counts}")
        if not tasks[0]:
            raise _refusal(first, second, f"{label} has no episode")


def _refusal(first: Submission, second: Submission, reason: str) -> ConfigError:
    name = second.config["suite"]["name"]
    return ConfigError(
        f"{first.path} and {second.path} did not play the same tasks: {reason}. Only equal tasks can be paired: run "
        f"`turngym eval {name} --agent ... --out FOLDER` for both with the same --episodes, --seed and options."
    )


def _prompt_differences(first: Submission, second: Submission) -> dict[str, tuple[str, str]]:
    """Return setting -> its two values, for settings of prompts that differ; empty unless both sides are models."""
    if "prompts" not in first.config or "prompts" not in second.config:
        return {}
    mine, theirs = _prompting(first.config), _prompting(second.config)
    pairs = {name: (str(mine.get(name, "")), str(theirs.get(name, ""))) for name in {**mine, **theirs}}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _prompting(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of prompts, those that were not given included."""
    sampling, style = config["sampling"], config.get("style")
    given = sampling.get("prompt")
    return {
        "format": sampling.get("format"),
        "style": style.get("name") if isinstance(style, Mapping) else PLAIN,
        **dataclasses.asdict(PromptConfig()),
        **(given if isinstance(given, Mapping) else {}),
    }


def _difference(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], metric: str) -> Difference:
    """Pair the episodes of one environment by their task."""
    blocks = {_task_of(row): row["block_id"] for row in first}
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name, column in METRICS.items():
        sides = [_by_task(rows, column) for rows in (first, second)]
        found[name] = [sides[0][task] for task in blocks], [sides[1][task] for task in blocks]
    changes = [b - a for a, b in zip(*found[metric], strict=True)]
    owners = list(blocks.values())
    return Difference(
        {
            name: (share_difference if name == "success" else paired_difference)(b, a, blocks=owners)
            for name, (a, b) in found.items()
        },
        {name: float_sum(a) / len(a) for name, (a, _) in found.items()},
        {name: float_sum(b) / len(b) for name, (_, b) in found.items()},
        sum(change > 0 for change in changes),
        sum(change < 0 for change in changes),
        sum(change == 0 for change in changes),
    )


_Task: TypeAlias = tuple[int, str]
"""Seed, and the recorded state that an episode continues; empty if it begins with a reset."""


def _task_of(row: Mapping[str, Any]) -> _Task:
    return row["seed"], row["state"]["sha256"] if "state" in row else ""


def _by_task(rows: Sequence[Mapping[str, Any]], field: str) -> dict[_Task, float]:
    """Return task -> mean of a field over the attempts at it."""
    values: dict[_Task, list[float]] = {}
    for row in rows:
        values.setdefault(_task_of(row), []).append(float(row[field]))
    return {task: float_sum(found) / len(found) for task, found in values.items()}


def _overall(parts: Sequence[Difference]) -> Difference:
    def mean(values: Sequence[float]) -> float:
        return float_sum(values) / len(values)

    return Difference(
        {name: equal_weight_mean([part.metrics[name] for part in parts]) for name in METRICS},
        {name: mean([part.first[name] for part in parts]) for name in METRICS},
        {name: mean([part.second[name] for part in parts]) for name in METRICS},
        sum(part.gained for part in parts),
        sum(part.lost for part in parts),
        sum(part.equal for part in parts),
    )


def verdict(comparison: Comparison) -> str:
    """Return in one sentence whether one side did better, as far as the interval shows it."""
    first, second = comparison.names if comparison.names[0] != comparison.names[1] else ("the first", "the second")
    found = comparison.overall.metrics[comparison.metric]
    if found.no_interval:
        told = f"Whether {second} did better than {first} is undecided: {_UNDECIDED[found.no_interval]}."
    elif found.low > 0:
        told = f"{second} did better than {first}: the interval is above 0."
    elif found.high < 0:
        told = f"{second} did worse than {first}: the interval is below 0."
    else:
        told = f"No difference between {first} and {second} is shown: the interval holds 0."
    tasks = "1 task" if found.blocks == 1 else f"{found.blocks} tasks"
    return told if found.blocks >= _FEW else f"{told} With {tasks} this says little."
