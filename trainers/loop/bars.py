"""Progress bars of a run; lines of text without a terminal."""

from __future__ import annotations

import time
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from turngym.terminal.console import Console
from turngym.trainers.loop.time_left import TimeLeft

_SECONDS = 30.0


class Bars(Progress):
    """Progress bars with a note; without a terminal, such as in a batch job's log, a line every ``seconds``.

    Args:
        console: Output.
        seconds: Seconds between two lines.
    """

    def __init__(self, console: Console, seconds: float = _SECONDS) -> None:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeLeft(),
            TextColumn("{task.fields[note]}"),
        )
        super().__init__(TextColumn("{task.description:>9}"), *columns, console=console)
        self._shows_bars = console.is_terminal or console.is_jupyter
        self._seconds, self._next = seconds, time.monotonic() + seconds

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Update a bar, and print its line if due or finished."""
        super().update(task_id, **fields)
        task, now = self._tasks[task_id], time.monotonic()
        if self._shows_bars or task.finished or now < self._next:
            return
        self._next = now + self._seconds
        line = f"{task.description:>9} {task.completed:g}/{task.total:g}  {task.fields.get('note', '')}"
        self.console.print(line.rstrip(), markup=False, highlight=False)
