"""Ends programs of a process when it dies, however it dies: a process of its own, to which they are named.

A signal at the death of the parent would not do: Linux sends it at the end of the thread that started the program, and
not to what the program has started. Started as a file, without the package around it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading


class Guardian:
    """Names process groups to a process that kills those that are left when this one ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,  # closed by the kernel when this process dies
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the terminal is for the run
            cwd="/",
            bufsize=0,
        )

    def watch(self, group: int) -> None:
        """Have a process group killed when this process ends."""
        self._tell(group)

    def release(self, group: int) -> None:
        """Watch a process group no more; it has ended."""
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


def main() -> None:
    """Read groups, negative ones to forget, and kill those that are left at the end of the input."""
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        groups.add(number) if number > 0 else groups.discard(-number)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
