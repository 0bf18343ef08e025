"""The judge of a task: a function of the files that an agent has left; programs run in a fresh box."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turngym.envs.tools.harbor.box import Ran
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.task import Probe, Task, Wanted

Tree = Mapping[str, Entry]
RunProbe = Callable[[Mapping[str, Entry], str], Ran]
"""Runs a command in a fresh box whose folder of the task has these files."""
_SCRATCH = "__pycache__"


class Verdict(NamedTuple):
    """State of a task.

    Args:
        held: Conditions that hold.
        conditions: All conditions.
        unasked: Paths that changed and should not have.
    """

    held: int
    conditions: int
    unasked: int

    @property
    def is_success(self) -> bool:
        """Whether everything holds, and nothing else has changed."""
        return self.held == self.conditions and not self.unasked

    @property
    def progress(self) -> float:
        """Share of conditions that hold, where each unasked change is one more that does not."""
        return self.held / (self.conditions + self.unasked)


class Judge:
    """Judges the files of a task. A probe runs again only where the files that it takes have changed.

    Args:
        task: The task.
        run: Runs probes.
    """

    def __init__(self, task: Task, run: RunProbe) -> None:
        self._task, self._run = task, run
        self._probed = [(_taken(task.files, probe), False) for probe in task.probes]
        """What each probe took last, and whether it passed: those of the start fail."""

    def verdict(self, files: Tree) -> Verdict:
        """Return the state of the task with these files, whose paths are below its folder."""
        task = self._task
        held = sum(_holds(files.get(path), wanted) for path, wanted in task.wanted.items())
        held += sum(self._passes(place, files) for place in range(len(task.probes)))
        return Verdict(held, len(task.wanted) + len(task.probes), sum(1 for _ in _unasked(task, files)))

    def _passes(self, place: int, files: Tree) -> bool:
        probe = self._task.probes[place]
        taken = _taken(files, probe)
        if taken != self._probed[place][0]:
            ran = self._run({**_parents(taken), **taken, **probe.files}, probe.command)
            self._probed[place] = taken, ran.output == probe.output and not ran.is_late
        return self._probed[place][1]


def _holds(entry: Entry | None, wanted: Wanted) -> bool:
    if wanted.data is None:
        return entry is None
    if entry is None or entry.kind != ("folder" if wanted.is_folder else "file"):
        return False
    is_same = wanted.is_folder or entry.data.rstrip(b"\n") == wanted.data.rstrip(b"\n")
    return is_same and wanted.mode in (None, entry.mode)


def _unasked(task: Task, files: Tree) -> Iterator[str]:
    """Yield the paths that have changed without being asked for; permissions count where the task is about them."""
    parents = _parents(task.wanted)
    for path in sorted({*task.files, *files}):
        before, after = task.files.get(path), files.get(path)
        if path in task.wanted or (path in parents and (after is None or after.kind == "folder")):
            continue
        if is_below(path, task.scratch) or _SCRATCH in path.split("/"):
            continue
        if before is None or after is None or before[::2] != after[::2]:
            yield path


def _parents(paths: Mapping[str, object] | Sequence[str]) -> dict[str, Entry]:
    """Return the folders that hold some paths."""
    found: dict[str, Entry] = {}
    for path in paths:
        for place, letter in enumerate(path):
            if letter == "/":
                found.setdefault(path[:place], Entry("folder", 0o755))
    return found


def _taken(files: Tree, probe: Probe) -> dict[str, Entry]:
    """Return the files that a probe takes along; a program that opens a pipe would wait."""
    return {path: entry for path, entry in files.items() if is_below(path, probe.keep) and entry.kind != "special"}


def is_below(path: str, places: Sequence[str]) -> bool:
    """Return whether a path is one of some places, or below one.

    >>> is_below("build/a.o", ["build"]), is_below("builder", ["build"])
    (True, False)
    """
    return any(path == place or path.startswith(f"{place}/") for place in places)
