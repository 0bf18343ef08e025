"""The details of a submission on a page: author, date, settings, and how it was verified."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.benchmarks.leaderboard.entries import Entry
from turngym.benchmarks.leaderboard.table import UNKNOWN_OF_LOGS, Group
from turngym.benchmarks.pages.tables import figure, interval_text
from turngym.trainers.core.wording import UNKNOWN, counted, number

SECONDS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def about(group: Group, entry: Entry, key: str) -> dict[str, Any]:
    """Return the details of a submission, for the macro ``submission``."""
    metadata, config = entry.submission.metadata, entry.submission.config
    checked = entry.verification
    middle = group.normalised_middle(entry)
    usage = entry.usage
    pairs = [
        ("Models", model_ids(entry)),
        ("Parameters", _said(metadata.get("parameters"))),
        ("Open weights", _said(metadata.get("open_weights"))),
        ("Training data", _said(metadata.get("training_data"))),
        ("Trained on the suite", _said(metadata.get("trained_on_suite"))),
        ("Contact", _said(metadata.get("contact"))),
        ("Opponents", _said(metadata.get("opponents"))),
        ("Agent", config["agent"]),
        ("Played", UNKNOWN if entry.is_log else f"{metadata['started']} to {metadata['finished']}"),
        ("Episodes", f"{entry.episodes:,}, {counted(config['repeats'], 'attempt')} at each task"),
        ("Success", _with_interval(entry.mean_of("success"), 100, " %")),
        ("Normalised, interquartile mean", UNKNOWN if middle is None else figure(middle)),
        ("Turns", _with_interval(entry.mean_of("turns"), 1)),
        *((f"Outcome {name}", _with_interval(found, 1, digits=3)) for name, found in entry.outcomes.items()),
        ("Tokens in / out", f"{number(usage.tokens_in)} / {number(usage.tokens_out)}"),
        ("Calls, retried, lost", f"{number(usage.calls)}, {number(usage.retries)}, {number(usage.lost)}"),
        ("Episodes with a fault", str(entry.faults)),
        *([("Episodes whose prompt did not fit", str(entry.context))] if entry.context else []),
        ("Style of prompting", _said(_name_of(config.get("style")))),
        ("Verifier", _said(_name_of(entry.submission.results.get("verifier")))),
        ("Sampling", _settings(config["sampling"])),
        ("Packages", _settings(config["packages"])),
        ("Hardware", _settings(config["hardware"])),
        ("Log" if entry.is_log else "Folder", str(entry.folder)),
        ("Not known", ", ".join(UNKNOWN_OF_LOGS) if entry.is_log else UNKNOWN),
    ]
    if checked is not None:
        pairs.append(("Played again", f"{checked.replayed:,} of {checked.episodes:,} episodes, seed {checked.seed}"))
        pairs += [("Not recomputed", told) for told in _not_recomputed(checked.not_recomputed)]
        pairs += [("Note", note) for note in checked.notes]
    for folder, count in group.copies[entry.folder].items():
        told = f"{count:,} episodes have the same actions as in {folder}: a copy, or the same agent"
        pairs.append(("Same episodes", told))
    shown = [(name, value) for name, value in pairs if value != UNKNOWN]
    return {"key": key, "name": entry.name, "status": entry.status, "facts": shown}


def _not_recomputed(names: Mapping[str, str]) -> list[str]:
    """Return a line for each reason, with the numbers that it concerns."""
    found: dict[str, list[str]] = {}
    for name, reason in names.items():
        found.setdefault(reason, []).append(name)
    return [f"{', '.join(each)}: {reason}" for reason, each in found.items()]


def _with_interval(estimate: Estimate, scale: float, unit: str = "", digits: int = 1) -> str:
    return f"{figure(scale * estimate.value, digits)}{unit} ({interval_text(estimate, scale, digits)})"


def _name_of(content: Any) -> Any:
    return content.get("name") if isinstance(content, Mapping) else content


def _settings(content: Any) -> str:
    if not isinstance(content, Mapping):
        return _said(content)
    return ", ".join(f"{key} {_said(value)}" for key, value in content.items() if value not in ({}, [], None, ""))


def model_ids(entry: Entry) -> str:
    """Return the models of a submission, each once."""
    models = entry.submission.metadata["models"].values()
    ids = [_model_id(each) for each in models]
    return ", ".join(dict.fromkeys(each for each in ids if each))


def _model_id(model: Any) -> str:
    if not isinstance(model, Mapping):
        return _said(model)
    name, revision = model.get("id"), model.get("revision")
    return f"{name} ({revision})" if revision else str(name or "")


def _said(value: Any) -> str:
    """Return untrusted content as text."""
    if value is None or value in ([], {}, ""):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def values(value: Any) -> Iterator[Any]:
    """Yield every value inside of others."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from values(each)
    elif value is not None:
        yield value


def duration(seconds: float) -> str:
    """Return a time as a person would say it.

    >>> duration(7.2), duration(5000), duration(float("nan"))
    ('7 s', '1 h 23 min', '–')
    """
    if not (math.isfinite(seconds) and seconds >= 0):
        return UNKNOWN
    left = round(seconds)
    parts: list[str] = []
    for size, unit in SECONDS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 ")) or "0 s"
