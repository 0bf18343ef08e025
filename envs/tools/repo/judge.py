"""The judge of a repository: hidden cases run on the package's sources in a separate sandbox, results compared here."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from turngym.envs.tools.code_repair.grading import Ran, passed, run_tests
from turngym.envs.tools.code_repair.values import encode
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.repo.task import RepoTask
from turngym.envs.tools.sandbox import Limits, Sandbox

LIMITS = Limits(wall_seconds=5.0, memory_mib=256)
"""Limits of a batch of cases."""
_PATH = re.compile(r"(?:[A-Za-z_]\w{0,63}/){1,4}[A-Za-z_]\w{0,63}\.py", re.ASCII)
_BATCH = 8
_ALL_SECONDS = 20.0
"""Time of all cases; those that are left then count as failed."""
_LARGEST, _MOST = 2**18, 100
"""Bytes of all sources of a package, and their number."""


class Verdict(NamedTuple):
    """State of a repository.

    Args:
        is_success: Whether all hidden cases pass.
        progress: Share of the cases that failed at the start and pass now, where each other case that fails counts as
            one more that failed.
    """

    is_success: bool
    progress: float


class Judge:
    """Judges the files of a repository; equal sources are judged once.

    Args:
        task: The task.
        sandbox: Sandbox of the cases; each judgement has its own session.
    """

    def __init__(self, task: RepoTask, sandbox: Sandbox) -> None:
        self._task, self._sandbox = task, sandbox
        self._last = sources(task, task.files), Verdict(False, 0.0)

    def verdict(self, files: Mapping[str, Entry]) -> Verdict:
        """Return the state with these files."""
        found = sources(self._task, files)
        if found != self._last[0]:
            self._last = found, self._judged(found)
        return self._last[1]

    def _judged(self, found: Mapping[str, str] | None) -> Verdict:
        task = self._task
        if found is None:
            return Verdict(False, 0.0)
        program = f"{_program()}\ninstall({dict(found)!r}, {task.package!r}, {list(task.modules)!r})\n"
        fine = passed(self._ran(program), task.expected)
        mended = sum(fine[place] for place in task.failing)
        broken = sum(not is_fine for place, is_fine in enumerate(fine) if place not in task.failing)
        return Verdict(all(fine), mended / (len(task.failing) + broken))

    def _ran(self, program: str) -> list[Ran]:
        """Return what came of each case; those of a batch that gave no results run again one by one."""
        cases = self._task.cases
        batches = [cases[place : place + _BATCH] for place in range(0, len(cases), _BATCH)]
        inputs = [[encode(list(batch))] for batch in batches]
        seconds, deadline = LIMITS.wall_seconds, time.monotonic() + _ALL_SECONDS
        ran, _ = run_tests(self._sandbox, program, "run_cases", inputs, seconds, deadline)
        found = [_split(one, len(batch)) for one, batch in zip(ran, batches, strict=True)]
        again = [[encode(case)] for each, batch in zip(found, batches, strict=True) if each is None for case in batch]
        single = iter(run_tests(self._sandbox, program, "run_case", again, seconds, deadline)[0] if again else ())
        results = [each or [next(single) for _ in batch] for each, batch in zip(found, batches, strict=True)]
        return [one for result in results for one in result]


def _split(ran: Ran, count: int) -> list[Ran] | None:
    """Return the results of a batch, None if it gave none."""
    is_whole = ran.is_known and isinstance(ran.value, list) and len(ran.value) == count
    return [Ran(True, value) for value in ran.value] if is_whole else None


def sources(task: RepoTask, files: Mapping[str, Entry]) -> dict[str, str] | None:
    """Return path -> source of the package: the agent's modules, and the vendored ones as they were.

    None if they are too large. Links, tests and configuration are left out, and so is everything beside the package.
    """
    found = dict(task.vendored)
    for path, entry in files.items():
        is_own = path.startswith(f"{task.package}/") and not path.startswith(f"{task.package}/vendor/")
        if is_own and entry.kind == "file" and _PATH.fullmatch(path):
            found[path] = entry.data.decode("utf8", "surrogateescape")
    if len(found) > _MOST or sum(map(len, found.values())) > _LARGEST:
        return None
    return found


@cache
def _program() -> str:
    return (Path(__file__).parent / "inside.py").read_text("utf8")
