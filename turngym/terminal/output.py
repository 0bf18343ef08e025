"""The standard output of a command: for programs its result and nothing else; for people tables that are not cut."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from turngym.terminal.console import Console

_FILE_COLUMNS = 120
"""Width of tables that go to a file or a pipe, which has no width of its own."""

_result_streams: list[TextIO] = []


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Keep standard output for :func:`print_json`; whatever else is written there goes to standard error.

    That holds for ``print`` in environments and third-party packages, for compiled code and for child processes, since
    the file descriptor itself is redirected. Without a descriptor, as in a notebook, only Python's ``sys.stdout`` is.
    """
    stdout = sys.stdout
    stdout.flush()
    saved = _redirected(stdout)
    stream = stdout if saved is None else os.fdopen(os.dup(saved), "w", encoding="ascii")
    _result_streams.append(stream)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _result_streams.pop()
        if saved is not None:
            stdout.flush()  # what a library kept for later with the stream itself
            os.dup2(saved, 1)
            os.close(saved)
            stream.close()


def _redirected(stdout: TextIO) -> int | None:
    """Point descriptor 1 to standard error and return a copy of what it was; None where ``stdout`` is not on it."""
    try:
        if stdout.fileno() != 1:
            return None
        saved = os.dup(1)
        os.dup2(2, 1)
    except (OSError, io.UnsupportedOperation, ValueError):
        return None
    return saved


def print_json(value: Any, sort_keys: bool = False) -> None:
    """Print a result as indented JSON in ASCII, on the reserved standard output if there is one.

    Args:
        value: A JSON value.
        sort_keys: Sort the keys of every object; otherwise they keep their order.

    >>> print_json({"success": 0.5})
    {
      "success": 0.5
    }
    """
    stream = _result_streams[-1] if _result_streams else sys.stdout
    print(json.dumps(value, indent=2, sort_keys=sort_keys), file=stream, flush=True)


def table_console() -> Console:
    """Return a console for tables: as wide as the terminal or ``COLUMNS``, and wide where the output is a file."""
    from turngym.terminal.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _FILE_COLUMNS
    return console
