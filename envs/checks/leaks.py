"""Rules about what closed copies leave behind: processes, threads, open files, temporary files."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from turngym.envs.checks.case import Case, replay
from turngym.envs.checks.elsewhere import PLAIN, elsewhere, stop_processes
from turngym.envs.checks.rule import Finding, Skipped, rule
from turngym.system.processes import children

PATIENCE_SECONDS = 5.0
"""Waiting time for processes and threads that are stopping."""

_ROUNDS = 3


def holdings() -> dict[str, Counter[str]]:
    """Return kind -> name -> count of the child processes, threads and open files of this process, where known."""
    found: dict[str, Counter[str]] = {"threads": Counter(thread.name for thread in threading.enumerate())}
    this = Path("/proc/self")
    if this.is_dir():
        found["open files"] = Counter(_link(path) for path in (this / "fd").iterdir())
        found["processes"] = Counter(f"{_command(child)} ({child})" for child in children(os.getpid()))
    return found


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:  # closed meanwhile: the listing's own descriptor
        return ""


def _command(process: int) -> str:
    try:
        return Path("/proc", str(process), "comm").read_text().strip()
    except OSError:
        return "?"


def _growth(before: dict[str, Counter[str]]) -> dict[str, list[str]]:
    """Return kind -> names of the resources that have increased in number."""
    now = holdings()
    return {
        kind: sorted((found - before[kind]).elements())
        for kind, found in now.items()
        if kind in before and found.total() > before[kind].total()
    }


def _grown(case: Case, rounds: int) -> dict[str, list[str]]:
    """Make, play and close copies, and return what has grown by at least one a copy."""
    before = holdings()
    for _ in range(rounds):
        replay(case.make(), case.first.seed, case.first.actions)
        case.close()
    if _growth(before):
        gc.collect()  # what only waits for garbage collection is not a leak
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (grown := _growth(before)) and time.monotonic() < deadline:
        time.sleep(0.05)  # stopping may take a moment
    return {kind: names for kind, names in grown.items() if len(names) >= rounds}


def _leaks(case: Case) -> dict[str, list[str]]:
    """Return what copies leave behind; what they share, such as one server, is not a leak."""
    if "leaks" not in case.facts:
        assert case.first  # played before anything is counted
        stop_processes(case)
        case.close(kept=True)
        grown = _grown(case, 1)
        case.facts["leaks"] = _grown(case, _ROUNDS) if grown else {}
    return case.facts["leaks"]  # type: ignore[no-any-return]


def _left(case: Case, kind: str) -> Iterator[Finding]:
    names = _leaks(case).get(kind, [])
    if names:
        shown = ", ".join(dict.fromkeys(names[:_ROUNDS]))
        yield Finding(f"{_ROUNDS} copies that were closed left {len(names)} {kind} behind: {shown}", case.first.seed)


_FIX = "Let go of it in close(), and open it in __init__ or once in begin(), not at every reset."


@rule(
    "no-leaked-processes",
    "A closed copy leaves no process behind.",
    why="A long run makes thousands of copies; each process that stays eats memory until the machine gives up.",
    fix=_FIX + " End a process with terminate(), wait() for it, and kill() it if it does not end.",
)
def no_leaked_processes(case: Case) -> Iterator[Finding]:
    """Processes are ended."""
    if "processes" not in holdings():
        raise Skipped("this system does not tell the processes that a process has started")
    yield from _left(case, "processes")


@rule(
    "no-leaked-threads",
    "A closed copy leaves no thread behind.",
    why="Threads that stay hold memory, and a program with one that never ends never ends either.",
    fix=_FIX + " Tell the thread to end, and join() it.",
)
def no_leaked_threads(case: Case) -> Iterator[Finding]:
    """Threads are joined."""
    yield from _left(case, "threads")


@rule(
    "no-leaked-files",
    "A closed copy leaves no file, pipe or socket open.",
    why="A process may hold some thousand open files; then every open() fails, in the middle of the night.",
    fix=_FIX + " Use `with open(...)` where you can.",
)
def no_leaked_files(case: Case) -> Iterator[Finding]:
    """Files are closed."""
    if "open files" not in holdings():
        raise Skipped("this system does not tell the open files of a process")
    yield from _left(case, "open files")


@rule(
    "no-temporary-files",
    "A closed copy leaves no temporary file behind.",
    why="Runs of days fill the disk, and then everything on the machine stops.",
    fix="Use tempfile.TemporaryDirectory and its cleanup() in close().",
    after=("same-in-other-process",),
)
def no_temporary_files(case: Case) -> Iterator[Finding]:
    """Temporary files are removed."""
    left = elsewhere(case).run(PLAIN).left
    if left:
        yield Finding(f"a copy that was closed left {len(left)} temporary files behind: {', '.join(left[:3])}")
