"""The part of a run's report page that shows trajectories turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from turngym.arithmetic import float_sum
from turngym.trainers.core.wording import UNKNOWN, counted, number, signed

_MAX_SAMPLES = 6


def samples(recorded: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the page shows of a few trajectories."""
    return [_trajectory(*sample) for sample in pick_samples(recorded, _MAX_SAMPLES)]


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


def _trajectory(name: str, position: int, record: Mapping[str, Any]) -> dict[str, Any]:
    turns = record["turns"]
    ended = "solved" if record.get("success") else "not solved"
    ended += ", truncated" if record.get("truncated") else ""
    summary = (
        f"{name} {position + 1}: {ended}, {counted(len(turns), 'turn')}, "
        f"return {number(record.get('returns', UNKNOWN))}, score {number(record.get('score', UNKNOWN))}, "
        f"seed {record.get('seed', UNKNOWN)}"
    )
    return {
        "summary": summary,
        "fault": str(record.get("fault") or ""),
        "turns": [_turn(turn) for turn in turns],
        "final_observation": str(record.get("final_observation") or ""),
    }


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    logprobs = turn.get("logprobs", [])
    return {
        "observation": str(turn.get("observation", "")),
        "completion": str(turn.get("completion", "")),
        "action": str(turn.get("action", "")),
        "is_invalid": turn.get("action_is_valid") is False,
        "reward": number(turn.get("reward", UNKNOWN)),
        "logprobs": " ".join(f"{value:.3f}" for value in logprobs),
        "logprobs_summary": f"Log-probability {signed(float_sum(logprobs), 3)} over {counted(len(logprobs), 'token')}",
    }
