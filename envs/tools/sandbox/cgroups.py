"""Control groups of the kernel: limits for all processes of a sandbox together, where the system permits them."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from functools import cache
from pathlib import Path

from turngym.envs.tools.sandbox.owners import is_gone, mark
from turngym.envs.tools.sandbox.protocol import Limits

ROOT = Path("/sys/fs/cgroup")
HELPERS = 8
"""Processes of a sandbox that are not the code's: launcher, driver and the like."""
_numbers = itertools.count()
_PREFIX = "turngym-"


class Group:
    """The control groups of one sandbox.

    Args:
        folders: Paths, one per hierarchy.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = folders

    def entry(self) -> list[str]:
        """Return the start of a command that joins the groups and then runs its arguments."""
        joins = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 97; shift; n=$((n-1)); done'
        return ["/bin/sh", "-c", f'{joins}; exec "$@"', "sh", str(len(self.folders)), *map(str, self.folders)]

    def processes(self) -> set[int]:
        """Return the ids of the processes in the groups."""
        found: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError):
                found |= set(map(int, (folder / "cgroup.procs").read_text().split()))
        return found

    def remove(self) -> None:
        """End what is left in the groups, and remove them."""
        deadline = time.monotonic() + 5
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        for folder in self.folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


def remove_stale() -> None:
    """Remove the control groups left behind by killed processes."""
    for parent in (ROOT, ROOT / "memory", ROOT / "pids"):
        for folder in parent.glob(f"{_PREFIX}*"):
            if is_gone(folder.name.removeprefix(_PREFIX).rpartition("-")[0]):
                Group((folder,)).remove()


@cache
def can_make_groups() -> bool:
    """Return whether this process can limit all processes of a sandbox together."""
    group = make_group(Limits()) if os.geteuid() == 0 else None
    if group is not None:
        group.remove()
    return group is not None


def make_group(limits: Limits) -> Group | None:
    """Return fresh control groups with the limits set; None where this system does not allow it."""
    name = f"{_PREFIX}{mark()}-{next(_numbers)}"
    memory = str((limits.memory_mib + limits.scratch_mib) * 1024 * 1024)
    most = str(limits.processes + HELPERS)
    if (ROOT / "cgroup.controllers").exists():
        wanted = {ROOT / name: {"memory.max": memory, "pids.max": most}}
    else:
        wanted = {
            ROOT / "memory" / name: {"memory.limit_in_bytes": memory},
            ROOT / "pids" / name: {"pids.max": most},
        }
    group = Group(tuple(wanted))
    try:
        for folder, settings in wanted.items():
            folder.mkdir()
            for key, value in settings.items():
                (folder / key).write_text(value)
    except OSError:
        group.remove()
        return None
    return group
