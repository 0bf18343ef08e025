"""Shape checks of untrusted JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turngym.storage.bounded import LARGEST

Kinds = Mapping[str, "type | tuple[type, ...]"]
"""Key -> type or types of its value."""
NUMBER = (int, float)


@dataclass(frozen=True)
class MalformedData:
    """A value of the wrong shape.

    Args:
        place: File, and line or key.
        message: What was expected and what is there.
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
    """Return whether a value is of a kind; a boolean is no number, and a number must be one that can be summed."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) and not (isinstance(value, float) and not abs(value) < LARGEST)
