"""Describes the machine that figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def processor() -> str:
    """Return the model name of the processor, as the system gives it.

    >>> processor() != ""
    True
    """
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text("utf8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine(*packages: str) -> dict[str, Any]:
    """Return processor, usable cores, memory, Python and the versions of some packages.

    Args:
        packages: Distribution names whose versions matter to the figures.

    >>> machine("gymnasium")["cores"] >= 1
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": processor(),
        "cores": cores,
        "memory_gib": round(memory, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
