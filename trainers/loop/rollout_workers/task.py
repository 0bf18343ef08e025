"""A task with rollouts by workers on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.trainers.loop.rollout_workers.cluster import Cluster
from turngym.trainers.loop.rollout_workers.worker import Branching, Gathering, Share
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.tasks.wrapped_task import WrappedTask
from turngym.trainers.settings.config import TrainConfig


class RayTask(WrappedTask[TaskSource]):
    """Distributes the groups of an iteration over workers; all else is done by the task in this process.

    An episode's seeds and samples depend only on its number, so it is the same on every worker, except for the last
    bits of log-probabilities, which depend on the batch.

    Args:
        config: Settings of the run.
        make_task: Creates the task; called here and in every worker.
    """

    def __init__(self, config: TrainConfig, make_task: Callable[[TrainConfig], TaskSource]) -> None:
        super().__init__(make_task(config))
        self.config = config
        self.cluster = Cluster(config, make_task)

    # Episodes.

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration, played by workers."""
        count = min(self.config.rollout.ray.workers, self.config.rollout.groups)
        return self._play(
            model, [Gathering(iteration, attempt, greedy, part.divided(index, count)) for index in range(count)]
        )

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch from turns of earlier episodes, on the workers."""
        parts = [Part(index, self.config.rollout.ray.workers) for index in range(self.config.rollout.ray.workers)]
        shares = [
            Branching(iteration, chosen, first + part.start(len(branches)))
            for part in parts
            if (chosen := part.slice(branches))
        ]
        played = self._play(model, shares)
        for trajectory, branch in zip(played, branches, strict=True):
            trajectory.spec = replace(trajectory.spec, branch=branch)  # the worker's is a copy
        return played

    def _play(self, model: LanguageModel, shares: Sequence[Share]) -> list[Trajectory]:
        answers = self.cluster.pool.play([self.cluster.job(model, share) for share in shares])
        for answer in answers:
            self.cluster.add(answer.metrics)
        return [trajectory for answer in answers for trajectory in answer.trajectories]

    def metrics(self) -> Mapping[str, float]:
        """Return the summed metrics of the workers' tasks, and the number of lost workers."""
        return self.cluster.metrics()

    def close(self) -> None:
        """End the workers, and close the task."""
        self.cluster.close()
        self.task.close()
