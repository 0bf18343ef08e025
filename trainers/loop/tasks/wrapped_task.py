"""Base class of tasks that delegate to another task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import Evaluation, TaskSource
from turngym.trainers.records.run_folder import RunFolder

TaskT = TypeVar("TaskT", bound=TaskSource)


class WrappedTask(TaskSource, Generic[TaskT]):
    """A task that delegates to another one by default.

    Args:
        task: The inner task.
    """

    def __init__(self, task: TaskT) -> None:
        self.task = task

    @property
    def has_expert(self) -> bool:
        """Value of the task."""
        return self.task.has_expert

    @property
    def has_comparable_rewards(self) -> bool:
        """Those of the task."""
        return self.task.has_comparable_rewards

    def warning(self, algorithm: Algorithm[Any]) -> str:
        """Return the warning of the task."""
        return self.task.warning(algorithm)

    def texts(self) -> list[str]:
        """Return the texts of the task."""
        return self.task.texts()

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        """Return the demonstrations of the task."""
        return self.task.demonstrations(model, count)

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of the task."""
        return self.task.gather(model, iteration, attempt, greedy, part)

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Return the branched episodes of the task."""
        return self.task.branch(model, iteration, branches, first)

    def again(
        self, model: LanguageModel, iteration: int, specs: Sequence[EpisodeSpec], notes: Sequence[str], first: int
    ) -> list[Trajectory]:
        """Play once more as the task does."""
        return self.task.again(model, iteration, specs, notes, first)

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the metrics of the task."""
        return self.task.curve_point(model)

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Return the evaluations of the task."""
        return self.task.evaluate(model, name, temperature)

    def metrics(self) -> Mapping[str, float]:
        """Return the additional metrics of the task."""
        return self.task.metrics()

    def sampling_model(self, model: LanguageModel) -> LanguageModel:
        """Return the sampling model of the task."""
        return self.task.sampling_model(model)

    def playing(self, folder: RunFolder, model: LanguageModel, iteration: int) -> AbstractContextManager[object]:
        """Return the rollout context of the task."""
        return self.task.playing(folder, model, iteration)

    def trained(self, model: LanguageModel, iteration: int) -> None:
        """Notify the task."""
        self.task.trained(model, iteration)

    def state(self, iteration: int) -> dict[str, Any]:
        """Return the task's state for a checkpoint."""
        return self.task.state(iteration)

    def restore(self, state: Mapping[str, Any], iteration: int) -> None:
        """Restore the task."""
        self.task.restore(state, iteration)

    def save(self, folder: RunFolder) -> None:
        """Save the task."""
        self.task.save(folder)

    def resume(self, folder: RunFolder, model: LanguageModel, iteration: int) -> None:
        """Resume the task."""
        self.task.resume(folder, model, iteration)

    def close(self) -> None:
        """Close the task."""
        self.task.close()
