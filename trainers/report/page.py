"""The sections of a run's report page, each a pure function of what was read."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.trainers.core.wording import UNKNOWN, counted, number, percent, signed, unbroken, with_interval
from turngym.trainers.report.attention import look_at
from turngym.trainers.report.findings import (
    MODES,
    RunData,
    Stage,
    difference_from,
    series,
    success_interval,
    turns_per_second,
)
from turngym.trainers.report.headline import POLICIES, headline_of, why_unclear
from turngym.trainers.report.samples import samples_section
from turngym.web.html import Html, details, join, sparkline, table, tag
from turngym.web.page import page as whole_page

KEY_METRICS: Mapping[str, tuple[str, ...]] = {
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
    title = f"{run.config.get('algorithm', 'Training')} on {run.config.get('env', 'an unknown environment')}"
    return whole_page(
        title,
        headline_section(run),
        attention_section(run),
        curve_section(picture),
        evaluation_section(run),
        progress_section(run),
        samples_section(run.samples),
        settings_section(run),
        missing_section(run),
        subtitle=subtitle(run),
        window=f"{title}: {run.name}",
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


def headline_section(run: RunData) -> Html:
    """Return the headline sentences."""
    found = headline_of(run)
    control = tag("p", found["control_sentence"]) if found["control_sentence"] else Html()
    sentence = tag("p", found["sentence"], class_=f"headline {found['verdict'] or 'unclear'}")
    return join([sentence, control, tag("p", found["held_out_sentence"], class_="quiet")])


def attention_section(run: RunData) -> Html:
    """Return what to look at where little could be learnt; nothing where no metric shows that."""
    found = look_at(run.metrics)
    if not found:
        return Html()
    return tag("section", tag("h2", "What to look at"), tag("ul", *(tag("li", sentence) for sentence in found)))


def curve_section(picture: bytes | None) -> Html:
    """Return the learning curve inside of the page."""
    if picture is None:
        return tag("p", "There is no learning curve.")
    data = "data:image/png;base64," + base64.b64encode(picture).decode()
    alt = "Learning curve: success over environment turns of training. The tables below give its numbers."
    return tag("figure", tag("img", src=data, alt=alt, class_="chart"))


def evaluation_section(run: RunData) -> Html:
    """Return how the policies did on the test split, and how they differ."""
    rows = [_evaluation_row(run, stage, mode) for mode in MODES for stage in POLICIES]
    pairs: list[tuple[Stage, str]] = [(stage, mode) for mode in MODES for stage in ("before", "control")]
    head = ["policy, actions", "success", "episodes", "score", "return", "turns", "invalid", "faults"]
    note = (
        "Mean and 95 % interval. Instances, not episodes, are resampled; where every episode came out the same, "
        "the interval of success is Wilson's. Invalid: share of actions. A faulted episode counts as a failure."
    )
    return tag(
        "section",
        tag("h2", "Evaluation on the test split"),
        table(note, head, rows),
        table(
            "Paired differences in success, over the instances that both policies played.",
            ["difference, actions", "points", "95 % interval", "instances", "better / worse", "verdict"],
            [_difference_row(run, stage, mode) for stage, mode in pairs],
        ),
    )


def _evaluation_row(run: RunData, stage: Stage, mode: str) -> list[str]:
    found = run.evaluation(stage, mode)
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


def _difference_row(run: RunData, other: Stage, mode: str) -> list[str]:
    found = difference_from(run, other, mode)
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


def progress_section(run: RunData) -> Html:
    """Return how key metrics went, and every metric of the last iteration."""
    title = tag("h2", "Progress")
    if not run.metrics:
        return tag("section", title, tag("p", "No iteration has been recorded."))
    last = run.metrics[-1]
    rows = [[key, number(last[key])] for key in sorted(last)]
    every = table(
        f"All metrics of iteration {number(last.get('iteration', len(run.metrics) - 1))}.", ["metric", "value"], rows
    )
    sparks = [_spark(name, found) for name, found in key_series(run).items() if found]
    return tag(
        "section",
        title,
        tag("div", *sparks, class_="sparks"),
        details(counted(len(rows), "metric") + " of the last iteration", every),
    )


def key_series(run: RunData) -> dict[str, list[tuple[int, float]]]:
    """Return name -> iterations and values of the metrics worth a look, empty where one was not recorded."""
    found = {}
    for name, keys in KEY_METRICS.items():
        candidates = (series(run.metrics, key) for key in keys)
        found[name] = next((values for values in candidates if values), [])
    return {**found, "environment turns a second": turns_per_second(run.metrics)}


def _spark(name: str, found: Sequence[tuple[int, float]]) -> Html:
    values = [value for _, value in found]
    words = f"from {number(values[0])} to {number(values[-1])}, between {number(min(values))} and {number(max(values))}"
    label = f"{name} over iterations {found[0][0]} to {found[-1][0]}: {words}"
    return tag("div", tag("div", name, class_="quiet"), sparkline(values, label), tag("b", number(values[-1])))


def settings_section(run: RunData) -> Html:
    """Return every setting of the run."""
    rows = [[key, value] for key, value in flatten(run.config)]
    content = table("Settings as the run recorded them.", ["setting", "value"], rows) if rows else tag("p", "Unknown.")
    return tag("section", tag("h2", "Settings"), details(counted(len(rows), "setting"), content))


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


def missing_section(run: RunData) -> Html:
    """Return what the page could not show."""
    if not run.missing:
        return Html()
    return tag("section", tag("h2", "What is missing"), tag("ul", *(tag("li", sentence) for sentence in run.missing)))
