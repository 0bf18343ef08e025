"""Atomic writes: a kill at any moment leaves the old file or the new one, never half of one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError
from turngym.storage.bounded import require_file

_LARGEST = 2**30


def path_of(value: Any, name: str) -> Path:
    """Return a path that was passed from Python.

    Args:
        value: Text or a path object.
        name: Name of the argument, for the message.

    Raises:
        ConfigError: It is neither.

    >>> path_of(3, "run_dir")
    Traceback (most recent call last):
    turngym.errors.ConfigError: run_dir must be a path, as text or a pathlib.Path, got 3.
    """
    if isinstance(value, str | os.PathLike):
        return Path(os.fspath(value))
    raise ConfigError(f"{name} must be a path, as text or a pathlib.Path, got {value!r:.80}.")


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a file under a temporary name, flush it to disk, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    # a lone surrogate, which an action may hold, becomes its escape: in JSON that is the same string
    data = content.encode("utf8", "backslashreplace") if isinstance(content, str) else content
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)  # half a file on a full disk helps nobody
        raise
    temporary.replace(path)


CACHES = ("alfworld", "search", "tasks", "textworld")
"""Parts of turngym whose cache folders may be deleted at any time; tokens of servers are not a cache."""


def cache_folder(name: str) -> Path:
    """Return the cache folder of a part of turngym; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "turngym" / name


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, whole or not at all, as far as errors such as a full disk are concerned.

    A kill in the middle leaves half a line at the end, which :func:`read_jsonl` leaves out and the next line replaces.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        end = truncate_torn_line(descriptor)
        os.lseek(descriptor, end, os.SEEK_SET)
        data = line.encode("utf8", "backslashreplace") + b"\n"
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)


def truncate_torn_line(descriptor: int) -> int:
    """Cut what a kill left behind the last whole line of an open file; returns where that line ends."""
    end = _end_of_lines(descriptor)
    os.ftruncate(descriptor, end)
    return end


def _end_of_lines(descriptor: int) -> int:
    """Return where the last whole line of a file ends."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    block = b""
    start = end
    while start and b"\n" not in block:
        start = max(start - 4096, 0)
        block = os.pread(descriptor, end - start, start)
    return start + block.rfind(b"\n") + 1


def write_json(path: Path, content: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_atomic(path, json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def read_text(path: Path) -> str:
    """Return the text of a regular file of at most 1 GiB; a pipe or a device would never end.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is something else, too large, or no text.
    """
    require_file(path, _LARGEST)
    return path.read_text("utf8")


def read_content(path: Path) -> Any:
    """Return the value in a JSON file, bounded as :func:`read_text` bounds it.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ValueError: It is not a regular file, too large, or no JSON.
    """
    return _parsed(read_text(path))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the records of a JSON-lines file; a last line that a kill cut short is left out.

    Raises:
        ValueError: A line that is not the last is no JSON, or the file is no regular one.
    """
    if not path.exists():
        return []
    lines = read_text(path).removesuffix("\n").split("\n")  # splitlines would also cut inside of strings
    records = []
    for number, line in enumerate(lines):
        try:
            records.append(_parsed(line))
        except ValueError:
            if number + 1 < len(lines):
                raise ValueError(f"line {number + 1} of {path} is not JSON: the file is damaged.") from None
    return records
