"""Remaining time, for progress bars of work that a deadline may end before its last step."""

from __future__ import annotations

import time

from rich.progress import Task, TimeRemainingColumn
from rich.text import Text


class TimeLeft(TimeRemainingColumn):
    """Column with the time to the last step, or to the task's field ``deadline`` if earlier.

    The field is a time of ``time.monotonic``; without it, a task has no deadline.
    """

    def render(self, task: Task) -> Text:
        """Return the time as hours, minutes and seconds."""
        seconds = seconds_left(task.time_remaining, task.fields.get("deadline", float("inf")), time.monotonic())
        if seconds is None or task.finished:
            return super().render(task)
        minutes, rest = divmod(int(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"{hours}:{minutes:02d}:{rest:02d}", style="progress.remaining")


def seconds_left(estimate: float | None, deadline: float, now: float) -> float | None:
    """Return the remaining seconds; None without estimate and deadline.

    Args:
        estimate: Estimated seconds to the last step; None if unknown.
        deadline: Time of the deadline; infinite for none.
        now: Current time of the same clock.

    >>> seconds_left(400.0, 130.0, 100.0), seconds_left(None, 130.0, 100.0), seconds_left(None, float("inf"), 100.0)
    (30.0, 30.0, None)
    """
    limit = max(deadline - now, 0.0)
    if estimate is None:
        return None if limit == float("inf") else limit
    return min(estimate, limit)
