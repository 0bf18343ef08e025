"""A task around another one, which it passes on what it does not do itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.loop.tasks.task import Evaluation, TaskSource

TaskT = TypeVar("TaskT", bound=TaskSource)


class WrappedTask(TaskSource, Generic[TaskT]):
    """A task whose texts, demonstrations and evaluations are those of another one.

    Args:
        task: The other one.
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

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        """Return the metrics of the task."""
        return self.task.curve_point(model)

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Iterator[Evaluation]:
        """Evaluate as the task does."""
        return self.task.evaluate(model, name, temperature)

    def close(self) -> None:
        """Close the task."""
        self.task.close()
