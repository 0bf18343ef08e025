"""Sampling of tasks that are solved sometimes but not always, as in DAPO's dynamic sampling (Yu et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from turngym.errors import ConfigError
from turngym.seeding import stream

Task: TypeAlias = int | str
"""A seed, or the name of an instance of a data set."""


class TaskSampler:
    """Samples tasks whose success rate is in an interval; tasks with too few episodes count as inside.

    Samples depend only on ``seed``, the number of samples so far, and the recorded results. Trainers record every
    member of a group.

    Args:
        tasks: The tasks to sample from; at least one, all different.
        low: Minimum success rate, in [0, 1].
        high: Maximum success rate, in [``low``, 1].
        window: Number of latest episodes of a task that count, at least 1.
        min_episodes: With fewer episodes a task is always eligible, at least 1.
        explore: Probability of sampling from all tasks, so that a task outside the interval can return.
        seed: Sampling seed.

    Raises:
        ConfigError: An option is out of range.

    >>> sampler = TaskSampler([1, 2], min_episodes=1, explore=0.0)
    >>> sampler.record(1, True)
    >>> sampler.eligible(), sampler.sample()
    ([2], 2)
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        low: float = 0.1,
        high: float = 0.9,
        *,
        window: int = 8,
        min_episodes: int = 2,
        explore: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.tasks = tuple(tasks)
        if not self.tasks or len(set(map(str, self.tasks))) != len(self.tasks):
            raise ConfigError(f"a task sampler needs tasks that are all different, got {len(self.tasks)}.")
        if not 0 <= low <= high <= 1:
            raise ConfigError(f"low and high of a task sampler need 0 <= low <= high <= 1, got {low} and {high}.")
        if not all(isinstance(n, int) for n in (min_episodes, window)) or not 1 <= min_episodes <= window:
            raise ConfigError(
                f"a task sampler needs whole numbers with 1 <= min_episodes <= window, got {min_episodes} and {window}."
            )
        if not 0 <= explore <= 1:
            raise ConfigError(f"explore of a task sampler must be in [0, 1], got {explore}.")
        self.low, self.high = low, high
        self.window, self.min_episodes, self.explore = window, min_episodes, explore
        self._known = frozenset(self.tasks)
        self.memory: dict[str, Any] = {"seed": seed, "draws": 0, "results": {}}
        """The mutable state as JSON values, to save and restore."""

    def __contains__(self, task: object) -> bool:
        """Return True if a task is one of the sampler's."""
        return task in self._known

    def reseed(self, seed: int) -> None:
        """Restart the samples from another seed; recorded results are kept."""
        self.memory["seed"], self.memory["draws"] = seed, 0

    def record(self, task: Task, solved: bool) -> None:
        """Record the result of an episode; other tasks are ignored."""
        if task in self:
            results = self.memory["results"]
            results[str(task)] = [*results.get(str(task), []), int(solved)][-self.window :]

    def rate(self, task: Task) -> float:
        """Return the success rate of the latest episodes, nan without any."""
        results = self.memory["results"].get(str(task), [])
        return sum(results) / len(results) if results else float("nan")

    def rates(self) -> Mapping[Task, float]:
        """Return the success rates of all tasks."""
        return {task: self.rate(task) for task in self.tasks}

    def is_eligible(self, task: Task) -> bool:
        """Return True if a task is neither too easy nor too hard, as far as known."""
        results = self.memory["results"].get(str(task), [])
        return len(results) < self.min_episodes or self.low <= sum(results) / len(results) <= self.high

    def eligible(self) -> list[Task]:
        """Return the eligible tasks."""
        return [task for task in self.tasks if self.is_eligible(task)]

    def sample(self) -> Task:
        """Sample a task; from all of them if none is eligible."""
        generator = stream("task sampler", self.memory["seed"], self.memory["draws"])
        self.memory["draws"] += 1
        explores = bool(generator.random() < self.explore)
        pool = self.tasks if explores else (self.eligible() or self.tasks)
        return pool[int(generator.integers(len(pool)))]
