"""Sampling of tasks that are solved sometimes, but not always."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import Reset, ResetResult, StepResult, TextWrapper
from turngym.wrappers.sampling.task_sampler import Task, TaskSampler


@WRAPPERS.register("success_filter")
class SuccessFilter(TextWrapper):
    """Samples tasks that the agent solves sometimes, in resets without seed and task.

    The tasks are those of the data set, or the seeds ``first_seed .. first_seed + num_seeds - 1``. A reset with a seed,
    or with ``options={"task": ...}``, plays that task. A seed also seeds the following samples, so slots of a vector
    that are reset with different seeds sample different tasks. The statistics of tasks persist across resets and are
    saved in snapshots. A trainer that samples groups uses :class:`turngym.wrappers.sampling.task_sampler.TaskSampler`
    itself, one for all slots.

    Args:
        env: The environment.
        low: Minimum success rate, in [0, 1].
        high: Maximum success rate, in [``low``, 1].
        num_seeds: Number of seeds to sample from if there is no data set.
        first_seed: The first of these seeds.
        window: Number of latest episodes of a task that count.
        min_episodes: With fewer episodes a task is always eligible.
        explore: Probability of sampling from all tasks.

    >>> import gymnasium, turngym
    >>> env = SuccessFilter(gymnasium.make("turngym/FrozenLake-v0"), num_seeds=3)
    >>> _ = env.reset(seed=9), env.reset()
    >>> env.task in (0, 1, 2)
    True
    """

    file_options = worded()

    name: ClassVar[str] = "success_filter"

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        low: float = 0.1,
        high: float = 0.9,
        num_seeds: int = 100,
        first_seed: int = 0,
        window: int = 8,
        min_episodes: int = 2,
        explore: float = 0.1,
    ) -> None:
        super().__init__(env)
        self.require("num_seeds", num_seeds, 1, 10_000_000, whole=True)
        self.require("first_seed", first_seed, 0, 2**62, whole=True)
        tasks: tuple[Task, ...] = self.tasks() or tuple(range(first_seed, first_seed + num_seeds))
        self.sampler = TaskSampler(
            tasks, low, high, window=window, min_episodes=min_episodes, explore=explore, seed=first_seed
        )
        self.lasting = self.sampler.memory
        self._drawn: Task | None = None

    def initial_state(self) -> dict[str, Any]:
        return {"task": None}

    @property
    def task(self) -> Task | None:
        """The task of the running episode; None if it is not one of the sampled tasks."""
        task: Task | None = self.state["task"]
        return task

    @property
    def rates(self) -> Mapping[Task, float]:
        """Success rate of every task, nan without episodes."""
        return self.sampler.rates()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; a rejected reset samples nothing."""
        memory, is_begun = self.sampler.memory, False
        before = memory["seed"], memory["draws"]
        try:
            begun = super().reset(seed=seed, options=options)
            is_begun = True
        finally:
            if not is_begun:
                memory["seed"], memory["draws"] = before
        return begun

    def transform_reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        chosen = (options or {}).get("task")
        if seed is not None:
            self.sampler.reseed(seed)
        if seed is None and chosen is None:
            self._drawn = self.sampler.sample()
            if isinstance(self._drawn, int):
                return self._drawn, options
            return seed, {**(options or {}), "task": self._drawn}
        named = chosen if isinstance(chosen, str) else None
        self._drawn = seed if chosen is None else named  # the index of a task is not a seed
        return seed, options

    def on_reset(self, result: ResetResult) -> None:
        self.state["task"] = self._drawn if self._drawn in self.sampler else None

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        if step.is_over and self.task is not None:
            self.sampler.record(self.task, step.info["success"] == 1)
        return step.reward, False

    def on_restore(self) -> None:
        self.sampler.memory = self.lasting
