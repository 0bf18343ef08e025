"""The part of a run's report page that shows trajectories turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from turngym.arithmetic import float_sum
from turngym.trainers.core.wording import UNKNOWN, counted, number, signed
from turngym.web.html import Html, details, join, tag, verbatim

MAX_SAMPLES = 6


def samples_section(samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> Html:
    """Return a few trajectories, turn by turn."""
    total = sum(len(records) for records in samples.values())
    chosen = pick_samples(samples, MAX_SAMPLES)
    recorded = counted(total, "recorded trajectory", "recorded trajectories")
    said = f"{len(chosen)} of {recorded}, the first of each kind, not picked by outcome." if chosen else "None."
    title = tag("h2", "Sample trajectories")
    return tag("section", title, tag("p", said, class_="quiet"), *(trajectory(*sample) for sample in chosen))


def pick_samples(
    samples: Mapping[str, Sequence[Mapping[str, Any]]], limit: int
) -> list[tuple[str, int, Mapping[str, Any]]]:
    """Return name, position and content of some trajectories: the first of each kind, then the second, and so on.

    >>> [sample[:2] for sample in pick_samples({"a": [{}, {}], "b": [{}]}, 3)]
    [('a', 0), ('b', 0), ('a', 1)]
    """
    columns = ([(name, k, record) for k, record in enumerate(records)] for name, records in samples.items())
    found = chain.from_iterable(zip_longest(*columns))
    return [sample for sample in found if sample is not None][:limit]


def trajectory(name: str, position: int, record: Mapping[str, Any]) -> Html:
    """Return one trajectory as a collapsed section."""
    turns = record["turns"]
    ended = "solved" if record.get("success") else "not solved"
    ended += ", truncated" if record.get("truncated") else ""
    summary = (
        f"{name} {position + 1}: {ended}, {counted(len(turns), 'turn')}, "
        f"return {number(record.get('returns', UNKNOWN))}, score {number(record.get('score', UNKNOWN))}, "
        f"seed {record.get('seed', UNKNOWN)}"
    )
    fault = tag("p", f"Fault: {record['fault']}", class_="bad") if record.get("fault") else Html()
    last = record.get("final_observation")
    final = join([tag("h3", "Final observation"), verbatim(str(last))]) if last else Html()
    return details(summary, fault, *(turn_part(k, turn) for k, turn in enumerate(turns)), final)


def turn_part(position: int, turn: Mapping[str, Any]) -> Html:
    """Return one turn: what was seen, written, done and earned."""
    invalid = tag("span", " invalid", class_="bad") if turn.get("action_is_valid") is False else Html()
    reward = number(turn.get("reward", UNKNOWN))
    facts = tag("p", "Action ", tag("code", str(turn.get("action", ""))), invalid, f", reward {reward}.")
    return tag(
        "section",
        tag("h3", f"Turn {position + 1}"),
        tag("div", "Observation", class_="quiet"),
        verbatim(str(turn.get("observation", ""))),
        tag("div", "Completion", class_="quiet"),
        verbatim(str(turn.get("completion", ""))),
        facts,
        _logprobs([float(value) for value in turn.get("logprobs", [])]),
    )


def _logprobs(values: Sequence[float]) -> Html:
    if not values:
        return Html()
    total = signed(float_sum(values), 3)
    summary = f"Log-probability {total} over {counted(len(values), 'token')}"
    return details(summary, tag("code", " ".join(f"{value:.3f}" for value in values)))
