"""A task whose episodes are played by rollout workers on a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Branch, Trajectory
from turngym.envs.vector.backends.remote.ray_session import import_ray
from turngym.trainers.engine.fingerprint import Expected, Fingerprints, Reading
from turngym.trainers.loop.rollout_workers.pool import WorkerPool
from turngym.trainers.loop.rollout_workers.weights import packed_files, packed_weights
from turngym.trainers.loop.rollout_workers.worker import Answer, Branching, Gathering, Setup, Share
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.tasks.wrapped_task import WrappedTask
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.ray import RayConfig


class VersionCheck:
    """Compares what each worker computes for a probe with what the learner computed at the weight sync.

    The bytes of what is trained arrive as they were sent. The rest of the model does not travel if every machine finds
    it by itself: it may be another revision there, and a worker's libraries may be other versions.

    Args:
        temperature: Temperature of the rollouts.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature
        self._prints: Fingerprints | None = None
        self._expected: Expected | None = None
        self._version = 0
        self._sound: dict[str, int] = {}

    def probe(self, model: LanguageModel) -> Sequence[Sequence[int]]:
        """Return the sequences that workers compute with new weights."""
        if self._prints is None:
            self._prints = Fingerprints.of(model, self.temperature)
        return self._prints.sequences

    def expect(self, model: LanguageModel, version: int) -> None:
        """Note what a version of the weights gives, when it is synced."""
        self.probe(model)
        assert self._prints is not None
        self._expected, self._version = self._prints.expect(model.network), version

    def fault_of(self, worker: str, answer: Answer) -> str:
        """Return what is wrong with the weights that an answer was played with, in words; nothing for sound ones.

        Args:
            worker: Name of the worker.
            answer: Its answer.
        """
        assert self._prints is not None and self._expected is not None
        if answer.version != self._version:
            return f"it played with version {answer.version} of the weights, expected {self._version}"
        if answer.scores is None:
            is_known = self._sound.get(worker) == self._version
            return "" if is_known else f"it has not shown what version {self._version} of the weights gives"
        verdict = self._prints.compare(worker, self._expected, Reading(answer.scores, ()))
        if verdict.faults:
            return verdict.text
        self._sound[worker] = self._version
        return ""


class RayTask(WrappedTask[TaskSource]):
    """Divides the groups of an iteration among workers; everything else is done by the task in this process.

    An episode's seeds and samples depend on its number and on nothing else, so it is the same wherever it is played,
    but for the last bits of the numbers, which depend on what is computed in one batch.

    Args:
        config: Settings of the run.
        make_task: Makes the task that plays; called here and in every worker.
    """

    def __init__(self, config: TrainConfig, make_task: Callable[[TrainConfig], TaskSource]) -> None:
        self.config = config
        self.make_task = make_task
        super().__init__(make_task(config))
        self.pool = WorkerPool(config.rollout.ray)
        self.version = 0
        """Number of weight syncs."""
        self._state: tuple[object, ...] = ()
        self._setup: Any = None
        self._weights: Any = None
        self._check = VersionCheck(config.rollout.temperature)
        self._metrics: dict[str, float] = {}

    # Episodes.

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration, played by the workers."""
        count = min(self.config.rollout.ray.workers, self.config.rollout.groups)
        return self._play(
            model, [Gathering(iteration, attempt, greedy, part.divided(index, count)) for index in range(count)]
        )

    def branch(self, model: LanguageModel, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        """Branch off from turns of gathered episodes, on the workers."""
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
        self._hand_over(model)
        lost = self.pool.lost

        def begin(actor: Any, share: Share) -> Any:
            return actor.play.remote([self._setup], self.version, [self._weights], share)

        answers: list[Answer] = self.pool.play(shares, begin, self._check.fault_of)
        for answer in answers:
            self._add(answer.metrics)
        self._add({"rollout/workers_lost": self.pool.lost - lost})
        return [trajectory for answer in answers for trajectory in answer.trajectories]

    def _hand_over(self, model: LanguageModel) -> None:
        """Put the weights into Ray's object store, if they have changed."""
        began = time.perf_counter()
        ray = import_ray()
        if self._setup is None:
            own = _of_a_worker(self.config)
            files, probe = packed_files(model.name), self._check.probe(model)
            self._setup = ray.put(Setup(own, self.make_task, model.name, files, probe))
        state = tuple((id(each), each._version) for each in model.network.parameters())
        if state != self._state:
            self._weights = ray.put(packed_weights(model.network))
            self._state = state
            self.version += 1
            self._check.expect(model, self.version)
        self._add({"time/hand_over_seconds": time.perf_counter() - began})

    def _add(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._metrics[name] = self._metrics.get(name, 0.0) + value

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of the workers' tasks, added up, and how many workers were lost."""
        found, self._metrics = self._metrics, {}
        return found

    def close(self) -> None:
        """End the workers, and close the task."""
        self.pool.close()
        self.task.close()


def _of_a_worker(config: TrainConfig) -> TrainConfig:
    """Return the settings as they hold inside of a worker, which plays alone and sees only GPUs that it reserved.

    With vLLM its own copy of the policy receives weights and computes nothing, so that it stays in main memory.
    """
    settings = config.rollout
    share = -(-settings.groups // settings.ray.workers) * settings.group_size
    rollout = replace(settings, ray=RayConfig(), num_envs=settings.num_envs or share)
    on_gpu = settings.ray.gpus and settings.sampler in ("auto", "transformers")
    return replace(config, rollout=rollout, device="cuda" if on_gpu else "cpu")
