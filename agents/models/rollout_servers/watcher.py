"""Runs a command until it ends, or until standard input closes, as it does when the process at its other end dies.

The command leads a process group, and all of it is ended: what a server started itself would otherwise stay behind.
Started as a file, without the package around it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

_GRACE_SECONDS = 10.0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group of a command, by force if it takes too long."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # none of it is left
        os.killpg(process.pid, number)


def _wait_for_the_other_end(process: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1024):
        pass
    _end(process)


def main(command: list[str]) -> int:
    """Run a command and return its exit status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    threading.Thread(target=_wait_for_the_other_end, args=(process,), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(process))
    status = process.wait()
    _signal(process, signal.SIGKILL)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
