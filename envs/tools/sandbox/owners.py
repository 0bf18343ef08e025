"""Owners of control groups and containers, so that the remains of killed processes are found and removed."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_USERS = 100_000_000


def mark() -> str:
    """Return a name for this process that is unique while the machine is up.

    >>> is_gone(mark())
    False
    """
    return f"{os.getpid()}-{_world()}"


def is_gone(name: str) -> bool:
    """Return whether a process has ended, of which :func:`mark` is the name; never for one that cannot be seen here.

    >>> is_gone("1-elsewhere"), is_gone("nonsense")
    (False, False)
    """
    pid, _, world = name.partition("-")
    return pid.isdecimal() and world == _world() and not Path("/proc", pid).exists()


@cache
def _world() -> str:
    """Return a name for what process ids count in: this boot of the machine, and this namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "unknown"


def user_number(count: int) -> int:
    """Return a number below :data:`_USERS` for the user of a sandbox: processes side by side have others."""
    return (os.getpid() % (_USERS // 1000)) * 1000 + count % 1000
