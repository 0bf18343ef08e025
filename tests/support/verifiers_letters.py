"""A taskset of verifiers for tests; each reward is appended to the file ``log`` with the task's number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf

from turngym.trainers.integrations.verifiers import TurngymHarness

__all__ = ["Letters", "TurngymHarness"]


class LettersData(vf.TaskData):  # type: ignore[misc]
    """A task."""

    log: str = ""


class LettersTask(vf.Task[LettersData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """Say something."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def even(self, trace: vf.Trace) -> float:
        """Return the share of characters with an even number."""
        said = trace.last_reply or ""
        value = sum(ord(letter) % 2 == 0 for letter in said) / max(len(said), 1)
        if self.data.log:
            with Path(self.data.log).open("a") as lines:
                lines.write(f"{self.data.idx} {value}\n")
        return value


class LettersConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Options."""

    log: str = ""


class Letters(vf.Taskset[LettersTask, LettersConfig]):  # type: ignore[misc]
    """Three tasks."""

    def load(self) -> Iterator[LettersTask]:
        """Yield the tasks."""
        for number in range(3):
            data = LettersData(prompt=f"Say something, {number}.", log=self.config.log)
            yield LettersTask(data, self.config.task)
