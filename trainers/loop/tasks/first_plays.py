"""Run a task on rank 0 and broadcast its episodes, for tasks that are already distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.core.trajectory_packing import packed, unpacked
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import Evaluation, TaskSource
from turngym.trainers.records.run_folder import RunFolder


class FirstPlays(TaskSource):
    """Task on rank 0 that broadcasts its episodes to the other ranks.

    Texts and demonstrations are only available on rank 0.

    Args:
        ranks: The ranks.
        make: Creates the task, on rank 0.
    """

    def __init__(self, ranks: Ranks, make: Callable[[], TaskSource]) -> None:
        self.ranks = ranks
        self._tasks = ranks.agree(lambda: [make()] if ranks.is_first else [])
        self._has_comparable_rewards = ranks.on_first(lambda: self.task.has_comparable_rewards)

    @property
    def task(self) -> TaskSource:
        """The task, on rank 0."""
        return self._tasks[0]

    @property
    def has_expert(self) -> bool:
        """Value of the task."""
        return bool(self._tasks) and self.task.has_expert

    @property
    def has_comparable_rewards(self) -> bool:
        """Those of the task, on every rank."""
        return self._has_comparable_rewards

    def warning(self, algorithm: Algorithm[Any]) -> str:
        """Return the warning of the task, on rank 0."""
        return "".join(task.warning(algorithm) for task in self._tasks)

    def texts(self) -> list[str]:
        """Return the texts of the task."""
        return self.task.texts()

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return the demonstrations of the task."""
        return self.task.demonstrations(model, count)

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes played by rank 0."""
        return self._sent(lambda: self.task.gather(model, iteration, attempt, greedy, part))

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Return the branched episodes played by rank 0, one per branch."""
        return self._sent(lambda: self.task.branch(model, iteration, branches, first), branches)

    def _sent(self, play: Callable[[], list[Trajectory]], branches: Sequence[Branch] = ()) -> list[Trajectory]:
        kept: list[Trajectory] = []

        def play_here() -> list[dict[str, Any]]:
            kept.extend(play())
            return [packed(trajectory) for trajectory in kept]

        received = self.ranks.on_first(play_here)
        if self.ranks.is_first:
            return kept
        begins: Sequence[Branch | None] = branches or [None] * len(received)
        return [unpacked(content, branch) for content, branch in zip(received, begins, strict=True)]

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the metrics of the task, on every rank."""
        return self.ranks.on_first(lambda: self.task.curve_point(model))

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate on rank 0; other ranks get no results."""
        found: list[Evaluation] = []
        self.ranks.on_first(lambda: found.extend(self.task.evaluate(model, name, temperature)))
        yield from found

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of the task, on every rank."""
        return self.ranks.on_first(lambda: dict(self.task.metrics()))

    def sampling_model(self, model: LanguageModel) -> LanguageModel:
        """Return the sampling model, on rank 0."""
        return self.task.sampling_model(model) if self._tasks else model

    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> AbstractContextManager[object]:
        """Return the context of the task, on rank 0."""
        return self.task.playing(folder, model, iteration) if self._tasks else nullcontext()

    def trained(self, model: LanguageModel, iteration: int) -> None:
        """Notify the task, on rank 0."""
        for task in self._tasks:
            task.trained(model, iteration)

    def save(self, folder: RunFolder) -> None:
        """Save the task, on rank 0."""
        for task in self._tasks:
            task.save(folder)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Restore the task, on rank 0."""
        for task in self._tasks:
            task.resume(folder, model, iteration)

    def close(self) -> None:
        """Close the task, on rank 0."""
        for task in self._tasks:
            task.close()
