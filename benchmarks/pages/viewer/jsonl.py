"""Reading JSON lines that may be large, broken or hostile: by the place of each line, one line at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from turngym.arithmetic import is_finite

LARGEST = 64 * 2**20
"""Bytes of an episode; a longer one is reported and not read."""
_CHUNK = 8 * 2**20
_LARGE = 10**18


@dataclass(frozen=True, slots=True)
class Place:
    """Position in a file.

    Args:
        start: Offset of its first byte.
        length: Bytes, line breaks included.
        line: Number of its first line, from 1.
    """

    start: int
    length: int
    line: int


class Broken(ValueError):
    """A line that cannot be read; says why."""


class Lines:
    """The lines of a file, found no further than somebody asks. Several threads may use it.

    Args:
        path: The file. What is added to it later is not looked for once its end was reached.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts: list[np.ndarray[Any, np.dtype[np.int64]]] = [np.zeros(1, np.int64)]
        self._counts = [1]  # starts found, over all arrays up to each
        self._read_up_to, self._is_at_end = 0, False
        self._lock = Lock()

    def place(self, number: int) -> Place | None:
        """Return where a line is, counted from 0; None if there is no such line."""
        with self._lock:
            while self._counts[-1] < number + 2 and not self._is_at_end:
                self._read_on()
            start, end = self._start(number), self._start(number + 1)
        if start is None:
            return None
        end = self._read_up_to if end is None else end
        return Place(start, end - start, number + 1) if end > start else None

    def _start(self, number: int) -> int | None:
        if number >= self._counts[-1]:
            return None
        index = int(np.searchsorted(self._counts, number, side="right"))
        before = self._counts[index - 1] if index else 0
        return int(self._starts[index][number - before])

    def _read_on(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._read_up_to)
            chunk = file.read(_CHUNK)
        if not chunk:
            self._is_at_end = True
            return
        found = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10) + (self._read_up_to + 1)
        self._read_up_to += len(chunk)
        if len(found):
            self._starts.append(found)
            self._counts.append(self._counts[-1] + len(found))


def each_line(path: Path, longest: int = LARGEST) -> Iterator[tuple[Place, bytes]]:
    r"""Yield place and content of every line; of a line that is too long, its beginning alone.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lines.jsonl"
    >>> _ = file.write_bytes(b'1\n{"a": 2}\nhalf')
    >>> [(place.start, line) for place, line in each_line(file)]
    [(0, b'1\n'), (2, b'{"a": 2}\n'), (11, b'half')]
    """
    start = 0
    with path.open("rb") as file:
        number = 0
        while line := file.readline(longest + 1):
            number += 1
            length = len(line)
            rest = line
            while len(rest) > longest and not rest.endswith(b"\n"):
                rest = file.readline(longest + 1)
                length += len(rest)
            yield Place(start, length, number), line
            start += length


def read(path: Path, place: Place) -> bytes:
    """Return what stands at a place.

    Raises:
        Broken: It is too long.
    """
    if place.length > LARGEST:
        raise Broken(f"line {place.line} has {place.length:,} bytes, more than {LARGEST:,}: it is not read.")
    with path.open("rb") as file:
        file.seek(place.start)
        return file.read(place.length)


def parsed(line: bytes, number: int) -> dict[str, Any]:
    """Return the object that a line holds.

    Raises:
        Broken: It holds none.

    >>> parsed(b'{"a": NaN}', 1)
    {'a': nan}
    """
    if len(line) > LARGEST:
        raise Broken(f"line {number} has more than {LARGEST:,} bytes: it is not read.")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            raise Broken(f"line {number}, the last one, is cut short: writing was stopped before its end.") from error
        raise Broken(f"line {number} is not JSON: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise Broken(f"line {number} holds {type(found).__name__}, expected an object.")
    return found


# Values of unknown type, as a page can show them.


def text(value: Any) -> str:
    """Return a value as text.

    >>> text("as it is"), text(None), text({"a": [1]})
    ('as it is', '', '{"a": [1]}')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if type(value) is int and abs(value) < _LARGE:
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "(nested too deeply to be shown)"


def number(value: Any) -> float | None:
    """Return a finite number, or None for everything else.

    >>> number(2), number(float("nan")), number("2"), number(True)
    (2.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if is_finite(value) else None


def whole(value: Any) -> int:
    """Return a whole number of at least 0, and 0 for everything else.

    >>> whole(3), whole(-1), whole("x")
    (3, 0, 0)
    """
    found = number(value)
    return int(found) if found is not None and found > 0 else 0


def numbered(value: Any) -> int | None:
    """Return the number of something, and None for everything that is no whole number of at least 0.

    >>> numbered(0), numbered(True), numbered(-1), numbered(1.5)
    (0, None, None, None)
    """
    return value if type(value) is int and 0 <= value < _LARGE else None


def items(value: Any) -> list[Any]:
    """Return a list, an empty one for everything else."""
    return value if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """Return an object, an empty one for everything else."""
    return value if isinstance(value, dict) else {}
