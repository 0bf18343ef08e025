"""Information about processes from /proc, if there is one, and objects of which each process has one."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class OncePerProcess(Generic[T]):
    """A per-process resource: created on first use, and again in a fork.

    Args:
        make: Makes it.

    >>> numbers = OncePerProcess(list)
    >>> numbers.get() is numbers.get()
    True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held: tuple[int, T] | None = None
        self._guard = threading.Lock()

    def get(self) -> T:
        """Return that of this process; what making it raises is raised again at every use."""
        with self._guard:
            if self._held is None or self._held[0] != os.getpid():
                self._held = os.getpid(), self._make()
            return self._held[1]

    def take(self) -> T | None:
        """Return that of this process, if there is one, for good: the next use makes a new one."""
        with self._guard:
            held, self._held = self._held, None
            return held[1] if held is not None and held[0] == os.getpid() else None


def has_ended(process: int) -> bool:
    """Return whether a process has ended, as far as /proc tells; False if there is no /proc.

    >>> has_ended(1)
    False
    """
    if not Path("/proc/self/stat").exists():
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def start_of(process: int) -> int:
    """Return when a process started, in clock ticks since the machine did; 0 where it is unknown or has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def children(process: int) -> list[int]:
    """Return the child processes of all threads of a process; empty where it has ended or /proc is absent."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end meanwhile
        for task in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):  # and so may one of its threads
                found.extend(map(int, (task / "children").read_text().split()))
    return found


def descendants(process: int) -> list[int]:
    """Return a process and all that descend from it, parents first; empty where it has ended or /proc is absent."""
    if not Path("/proc", str(process)).exists():
        return []
    found = [process]
    for each in found:
        found.extend(children(each))
    return found


def own_memory_mib(process: int) -> float:
    """Return the memory of a process, each shared page divided by those who share it (PSS); 0 where it is unknown."""
    try:
        text = Path("/proc", str(process), "smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def resident_mib(process: int) -> float:
    """Return how much of a process is in memory; 0 where it is unknown. Faster than :func:`own_memory_mib`."""
    try:
        pages = Path("/proc", str(process), "statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
