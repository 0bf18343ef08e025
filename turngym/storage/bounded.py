"""Bounded reading of untrusted JSON, line by line."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, NoReturn

LARGEST_FILE, LARGEST_LINES, LONGEST_LINE = 32 * 2**20, 256 * 2**20, 16 * 2**20
"""Bytes of a file with one value, of a file of lines, and of a line."""
MOST_EPISODES = 100_000
"""Lines of a file, and episodes that a submission may ask for."""
DEEPEST = 60
LARGEST = 1e100
"""No number reaches this."""
_MOST_DIGITS = 20


def read_json(path: Path) -> Any:
    """Return the value in a file.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is too large, or holds no JSON within the bounds.
    """
    require_file(path, LARGEST_FILE)
    return parsed(path.read_text("utf8"))


def read_lines(path: Path) -> list[Any]:
    """Return the values in the lines of a file, of whose text no more than one line is in memory at once.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is too large, has too many lines, or one holds no JSON within the bounds.
    """
    require_file(path, LARGEST_LINES)
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


def require_file(path: Path, largest: int) -> None:
    """Refuse what is not a regular file, such as a pipe or a device, or larger than what is read.

    Raises:
        OSError: There is no such file.
        ValueError: It is something else, or too large.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is not a regular file, which is not read")
    if about.st_size > largest:
        raise ValueError(f"it has {about.st_size:,} bytes, more than the {largest:,} that are read")


def parsed(text: str) -> Any:
    """Return the JSON value in a text.

    Raises:
        ValueError: It is none, or holds a number that is none or too large, or is nested too deeply.

    >>> parsed('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_number, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _require_flat(value)
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _number(text: str) -> float:
    found = float(text)
    if not abs(found) < LARGEST:
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
