"""Whether an environment leaves processes, threads or open files behind."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from turngym.envs.check_case import Case, Player

_WARM_UP, _ROUNDS = 2, 3
_PATIENCE_SECONDS = 5.0


def leaks(case: Case) -> Iterator[str]:
    """Making, playing and closing copies again and again leaves nothing behind.

    What is kept once for all copies, such as one shared server process, is no leak: only growth is one.
    """
    for _ in range(_WARM_UP):
        _use(case)
    before = holdings()
    for _ in range(_ROUNDS):
        _use(case)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (grown := _growth(before)) and time.monotonic() < deadline:
        time.sleep(0.05)  # what was told to end may need a moment
    for kind, count in grown.items():
        yield f"{_ROUNDS} copies that were closed left {count} {kind} behind"


def _use(case: Case) -> None:
    Player(case.make(), case.seeds[0]).finish()
    case.close()


def _growth(before: dict[str, int]) -> dict[str, int]:
    gc.collect()
    now = holdings()
    return {kind: now[kind] - count for kind, count in before.items() if now[kind] > count}


def holdings() -> dict[str, int]:
    """Return how many child processes, threads and open files this process has; files and children where known."""
    found = {"threads": threading.active_count()}
    this = Path("/proc/self")
    if this.is_dir():
        found["open files"] = len(list((this / "fd").iterdir()))
        lists = [task / "children" for task in (this / "task").iterdir()]
        found["child processes"] = sum(len(text.read_text().split()) for text in lists if text.exists())
    return found
