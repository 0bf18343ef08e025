"""Ends programs of a process when it dies, however it dies: its own process, to which they are named.

A signal at the death of the parent would not do: Linux sends it at the end of the thread that started the program, and
not to what the program has started. A program may also leave its process group (``setsid``) and its parents (a daemon):
what it starts is found by a variable that children inherit. Started as a file, without the package around it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator

VARIABLE = "TURNGYM_PROGRAM"
"""Environment variable that holds the mark of a program, and of what it starts."""
_ROUNDS = 200  # a process that starts others while it is looked for needs several
_PAUSE_SECONDS = 0.01


class Guardian:
    """Names programs to a process that kills those that are left when this one ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mark = secrets.token_hex(16)
        self._numbers = itertools.count()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, self._mark],
            stdin=subprocess.PIPE,  # closed by the kernel when this process dies
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the terminal is for the run
            cwd="/",
            bufsize=0,
        )

    def new_mark(self) -> str:
        """Return a value for :data:`VARIABLE` of a program that is about to start."""
        return f"{self._mark}-{next(self._numbers)}."

    def watch(self, group: int) -> None:
        """Have a process group killed when this process ends, and all that its program has started."""
        self._tell(group)

    def end(self, group: int, mark: str) -> None:
        """Kill a process group and all that its program has started, and watch it no more."""
        end_all([group], mark)
        self._tell(-group)

    def _tell(self, number: int) -> None:
        assert self._process.stdin is not None
        with self._lock, contextlib.suppress(OSError, ValueError):  # it was killed, or is closed
            self._process.stdin.write(f"{number}\n".encode())

    def close(self) -> None:
        """Kill what is left, and end."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.close()
        self._process.wait()


def end_all(groups: Iterable[int], mark: str) -> None:
    """Kill process groups, and all processes whose mark starts with a text, with their descendants.

    Args:
        groups: The groups.
        mark: Beginning of the value of :data:`VARIABLE`.
    """
    for _ in range(_ROUNDS):
        found = {each for process in _marked(mark) for each in _family(process)}  # their death would hide children
        for kill, numbers in ((os.killpg, groups), (os.kill, found)):
            for number in numbers:
                with contextlib.suppress(OSError):  # it has ended
                    kill(number, signal.SIGKILL)
        if not found:
            return
        groups = ()
        time.sleep(_PAUSE_SECONDS)


def _numbers_in(path: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(path) if name.isdigit()]
    except OSError:
        return []


def _marked(mark: str) -> Iterator[int]:
    """Yield the processes with a mark; empty if there is no /proc."""
    wanted = f"{VARIABLE}={mark}".encode()
    for process in _numbers_in("/proc"):
        with contextlib.suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
            if wanted in file.read():
                yield process


def _family(process: int) -> list[int]:
    found = [process]
    for each in found:
        for task in _numbers_in(f"/proc/{each}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{each}/task/{task}/children", "rb") as file:
                found.extend(map(int, file.read().split()))
    return found


def main() -> None:
    """Read groups, negative ones to forget, and kill what is left at the end of the input."""
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        groups.add(number) if number > 0 else groups.discard(-number)
    end_all(groups, sys.argv[1])


if __name__ == "__main__":
    main()
