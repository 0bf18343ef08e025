"""Shape checks of untrusted JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turngym.storage.bounded import LARGEST

Kinds = Mapping[str, "type | tuple[type, ...]"]
"""Key -> type or types of its value."""
NUMBER = (int, float)
_COUNTS = frozenset(
    {"tokens_in", "tokens_out", "calls", "retries", "lost", "unmetered", "shortened", "illegal", "tokens_cached"}
    | {"reviews", "objections", "unreadable"}
)
_PLAYED = frozenset({"answers", "parse_failures", "defaults", "faults"})
_AMOUNTS = frozenset({"latency", "cost"})


@dataclass(frozen=True)
class MalformedData:
    """A value of the wrong shape.

    Args:
        place: File, and line or key.
        message: Expected and found values.
    """

    place: str
    message: str


def shape(value: Any, kinds: Kinds, place: str) -> Iterator[MalformedData]:
    """Yield the keys that a table lacks, or that hold values of another kind."""
    if not isinstance(value, dict):
        yield MalformedData(place, f"expected a table of names and values, got {type(value).__name__}")
        return
    for key, kind in kinds.items():
        if key not in value:
            yield MalformedData(place, f"it has no {key!r}")
        elif not is_kind(value[key], kind):
            names = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            yield MalformedData(place, f"{key} must be {names}, got {str(value[key])[:60]!r}")


def is_kind(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a kind; a boolean is not a number, and a number must be one that can be summed."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) and not (isinstance(value, float) and not abs(value) < LARGEST)


def are_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def usage_problem(told: Mapping[str, Any]) -> str:
    """Return why a table of tokens, calls and costs cannot be true; empty if it can.

    >>> usage_problem({"tokens_in": 3, "cost": None, "failures": {"timeout": 1}}), usage_problem({"latency": -0.5})
    ('', 'latency must be a number of at least 0, got -0.5')
    """
    for name, value in told.items():
        if name in _COUNTS | _PLAYED and not (is_kind(value, int) and value >= 0):
            return f"{name} must be a whole number of at least 0, got {str(value)[:60]}"
        if name in _AMOUNTS and not (is_kind(value, NUMBER) and value >= 0) and (name, value) != ("cost", None):
            return f"{name} must be a number of at least 0, got {str(value)[:60]}"
    failures = told.get("failures", {})
    if not isinstance(failures, dict) or not all(is_kind(count, int) and count >= 0 for count in failures.values()):
        return f"failures must be counts of at least 0, got {str(failures)[:60]}"
    return ""
