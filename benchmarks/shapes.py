"""Reads JSON that somebody else wrote: within bounds, line by line, and says what of it has not the right shape."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

Kinds = Mapping[str, "type | tuple[type, ...]"]
"""Key -> type or types of its value."""
NUMBER = (int, float)
LARGEST_FILE, LARGEST_LINES, LONGEST_LINE = 32 * 2**20, 256 * 2**20, 16 * 2**20
"""Bytes of a file with one value, of a file of lines, and of a line."""
MOST_EPISODES = 100_000
"""Lines of a file, and episodes that a submission may ask for."""
DEEPEST = 60
_LARGEST, _MOST_DIGITS = 1e100, 20


@dataclass(frozen=True)
class Misshapen:
    """Something that has not the right shape.

    Args:
        place: File, and line or key.
        message: What was expected and what is there.
    """

    place: str
    message: str


def read_json(path: Path) -> Any:
    """Return the value in a file.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is too large, or holds no JSON within the bounds.
    """
    _require_file(path, LARGEST_FILE)
    return parsed(path.read_text("utf8"))


def read_lines(path: Path) -> list[Any]:
    """Return the values in the lines of a file, of whose text no more than one line is in memory at once.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is too large, has too many lines, or one holds no JSON within the bounds.
    """
    _require_file(path, LARGEST_LINES)
    found: list[Any] = []
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            number = len(found) + 1
            if number > MOST_EPISODES:
                raise ValueError(f"it has more than {MOST_EPISODES:,} lines, which are not read")
            if len(line) > LONGEST_LINE:
                raise ValueError(f"line {number} has more than {LONGEST_LINE:,} bytes, which are not read")
            try:
                found.append(parsed(line.decode("utf8")))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from error
    return found


def _require_file(path: Path, largest: int) -> None:
    """Raise unless a path is a file, no pipe or device, of a size that is read."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is no regular file, which is not read")
    if about.st_size > largest:
        raise ValueError(f"it has {about.st_size:,} bytes, more than the {largest:,} that are read")


def parsed(text: str) -> Any:
    """Return the JSON value in a text.

    Raises:
        ValueError: It is none, or holds a number that is none or too large, or is nested too deeply.

    >>> parsed('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    value = json.loads(text, parse_constant=_refuse, parse_float=_number, parse_int=_whole)
    _require_flat(value)
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _number(text: str) -> float:
    found = float(text)
    if not abs(found) < _LARGEST:
        raise ValueError(f"the number {text[:40]} is too large")
    return found


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"the number {text[:40]}... has {len(text)} digits, more than {_MOST_DIGITS}")
    return int(text)


def _require_flat(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]


def shape(value: Any, kinds: Kinds, place: str) -> Iterator[Misshapen]:
    """Yield the keys that a table lacks, or that hold values of another kind."""
    if not isinstance(value, dict):
        yield Misshapen(place, f"expected a table of names and values, got {type(value).__name__}")
        return
    for key, kind in kinds.items():
        if key not in value:
            yield Misshapen(place, f"it has no {key!r}")
        elif not is_kind(value[key], kind):
            names = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            yield Misshapen(place, f"{key} must be {names}, got {str(value[key])[:60]!r}")


def is_kind(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a kind; a boolean is no number, and a number must be one that can be summed."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) and not (isinstance(value, float) and not abs(value) < _LARGEST)
