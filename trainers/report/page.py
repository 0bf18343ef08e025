"""The page of a run's report, from what was read."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.trainers.core.wording import UNKNOWN, counted, number, percent, signed, unbroken, with_interval
from turngym.trainers.report.explanation import explanation, look_at
from turngym.trainers.report.findings import (
    MODES,
    RunData,
    Stage,
    difference_from,
    environments,
    series,
    success_interval,
    title_of,
    turns_per_second,
)
from turngym.trainers.report.headline import POLICIES, headline_of, why_unclear
from turngym.trainers.report.samples import samples
from turngym.web.page import Spark, spark
from turngym.web.page import page as whole_page

_KEY_METRICS: Mapping[str, tuple[str, ...]] = {
    "success in training": ("rollout/success",),
    "success on dev": ("eval/success",),
    "entropy": ("loss/entropy", "train/entropy"),
    "clip fraction": ("loss/clip_fraction", "train/clip_fraction"),
    "gradient norm": ("train/grad_norm", "loss/grad_norm"),
    "log-probability gap": ("train/logprob_gap", "loss/logprob_gap"),
    "mean log-probability gap": ("train/logprob_gap_mean",),
}


def page(run: RunData, picture: bytes | None) -> str:
    """Return the whole page."""
    labels = environments(run.config)
    title = title_of(run.config)
    last = run.metrics[-1] if run.metrics else {}
    return whole_page(
        title,
        "turngym.trainers.report:report.html",
        subtitle=subtitle(run),
        window=f"{title}: {run.name}",
        headline=headline_of(run),
        explanation=explanation(run),
        attention=look_at(run),
        picture="" if picture is None else base64.b64encode(picture).decode(),
        tables=[
            ("all environments" if labels else "", *_tables(run)),
            *((each, *_tables(run, each)) for each in labels),
        ],
        sparks=[_spark(name, found) for name, found in _key_series(run).items() if found],
        metrics=[[key, number(last[key])] for key in sorted(last)],
        iteration=number(last.get("iteration", len(run.metrics) - 1)),
        samples=samples(run.samples),
        recorded=sum(map(len, run.samples.values())),
        settings=list(flatten(run.config)),
        missing=run.missing,
        counted=counted,
    )


def subtitle(run: RunData) -> str:
    """Return the run's name, seed and length in words."""
    parts = [f"Run {run.name}", f"seed {run.config.get('seed', UNKNOWN)}", counted(len(run.metrics), "iteration")]
    if run.metrics:
        last = run.metrics[-1]
        if "turns_total" in last:
            parts.append(f"{number(last['turns_total'])} environment turns")
        if "seconds_total" in last:
            parts.append(f"{number(round(float(last['seconds_total'])))} seconds")
    return ", ".join(parts) + "."


def _tables(run: RunData, label: str = "") -> tuple[list[list[str]], list[list[str]]]:
    """Return the lines of the tables of evaluations and differences, on one of several environments or all."""
    others: tuple[Stage, ...] = ("before", "control")
    return (
        [_evaluation_row(run, stage, mode, label) for mode in MODES for stage in POLICIES],
        [_difference_row(run, stage, mode, label) for mode in MODES for stage in others],
    )


def _evaluation_row(run: RunData, stage: Stage, mode: str, label: str) -> list[str]:
    found = run.evaluation(stage, mode, label)
    name = f"{POLICIES[stage]}, {mode}"
    return [name, *(_evaluation_cells(found) if found else ["not evaluated", *[UNKNOWN] * 6])]


def _evaluation_cells(found: EvaluationResult) -> list[str]:
    low, high = success_interval(found.success)
    return [
        unbroken(f"{percent(found.success.value)} [{100 * low:.1f}, {100 * high:.1f}]"),
        f"{found.success.count:,}",
        *(unbroken(with_interval(estimate)) for estimate in (found.score, found.reward_sum, found.turns)),
        unbroken(percent(found.invalid_actions)),
        str(found.faults) + (f" (and {found.context} whose prompt did not fit)" if found.context else ""),
    ]


def _difference_row(run: RunData, other: Stage, mode: str, label: str) -> list[str]:
    found = difference_from(run, other, mode, label)
    name = f"after training − {'before training' if other == 'before' else 'control'}, {mode}"
    if found is None:
        return [name, "unknown: both are needed", *[UNKNOWN] * 4]
    estimate = found.estimate
    return [
        name,
        signed(100 * estimate.value),
        unbroken(f"[{signed(100 * estimate.low)}, {signed(100 * estimate.high)}]"),
        f"{estimate.count:,}" + (f" ({found.unmatched:,} left out)" if found.unmatched else ""),
        f"{found.gained:,} / {found.lost:,}",
        found.verdict if found.verdict != "unclear" else f"no difference shown: {why_unclear(found)}",
    ]


def _key_series(run: RunData) -> dict[str, list[tuple[int, float]]]:
    """Return name -> iterations and values of the metrics worth a look, empty where one was not recorded."""
    found = {}
    for name, keys in _KEY_METRICS.items():
        candidates = (series(run.metrics, key) for key in keys)
        found[name] = next((values for values in candidates if values), [])
    return {**found, "environment turns a second": turns_per_second(run.metrics)}


def _spark(name: str, found: Sequence[tuple[int, float]]) -> tuple[str, Spark, str, str]:
    """Return the name, drawing, description and last value of a series."""
    values = [value for _, value in found]
    words = f"from {number(values[0])} to {number(values[-1])}, between {number(min(values))} and {number(max(values))}"
    label = f"{name} over iterations {found[0][0]} to {found[-1][0]}: {words}"
    return name, spark(values), label, number(values[-1])


def flatten(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted name and value of everything in a nested mapping.

    >>> list(flatten({"a": {"b": 1, "c": {}}, "d": "x"}))
    [('a.b', '1'), ('a.c', '{}'), ('d', 'x')]
    """
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
