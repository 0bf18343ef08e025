"""What the system tells of a process; nothing is raised where it cannot tell."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path


def has_ended(process: int) -> bool:
    """Return whether a process has ended, as far as /proc tells; False where there is no /proc.

    >>> has_ended(1)
    False
    """
    if not Path("/proc/self/stat").exists():
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def descendants(process: int) -> list[int]:
    """Return a process and all that descend from it, parents first; empty where it has ended or /proc is absent."""
    if not Path("/proc", str(process)).exists():
        return []
    found = [process]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*"):
            with contextlib.suppress(OSError):  # a thread may end meanwhile
                found.extend(map(int, (task / "children").read_text().split()))
    return found


def own_memory_mib(process: int) -> float:
    """Return the memory of a process, each shared page divided by those who share it (PSS); 0 where it is unknown."""
    try:
        text = Path("/proc", str(process), "smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0
