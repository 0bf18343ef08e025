"""State of rollout workers on a Ray cluster: settings, versions of weights, and their verification."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from turngym.agents.models.loading import LanguageModel
from turngym.envs.vector.backends.remote.ray_session import import_ray
from turngym.trainers.engine.fingerprint import Expected, Fingerprints, Reading
from turngym.trainers.loop.rollout_workers.pool import WorkerPool
from turngym.trainers.loop.rollout_workers.weights import packed_files, packed_weights
from turngym.trainers.loop.rollout_workers.worker import Answer, Setup, Share
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.ray import RayConfig


class Synced(NamedTuple):
    """A version of the weights for workers.

    Args:
        version: Number of weight syncs, including this one.
        expected: The learner's probe values.
    """

    version: int
    expected: Expected


class VersionCheck:
    """Compares each worker's probe values with the learner's at the weight sync.

    Trained weights are sent unchanged, but other weights may be loaded from another revision on a worker's machine, and
    its libraries may have other versions.

    Args:
        temperature: Temperature of the rollouts.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature
        self._prints: Fingerprints | None = None
        self._sound: dict[str, int] = {}

    def probe(self, model: LanguageModel) -> Sequence[Sequence[int]]:
        """Return the probe's sequences."""
        if self._prints is None:
            self._prints = Fingerprints.of(model, self.temperature)
        return self._prints.sequences

    def expect(self, model: LanguageModel, version: int) -> Synced:
        """Return the expected probe values of the weights being synced."""
        self.probe(model)
        assert self._prints is not None
        return Synced(version, self._prints.expect(model.network))

    def fault_of(self, worker: str, answer: Answer, synced: Synced) -> str:
        """Return the problem with the weights of an answer; empty for valid ones.

        Args:
            worker: Name of the worker.
            answer: The worker's answer.
            synced: The weights assigned to it.
        """
        assert self._prints is not None
        if answer.version != synced.version:
            return f"it played with version {answer.version} of the weights, expected {synced.version}"
        if answer.scores is None:
            is_known = self._sound.get(worker) == synced.version
            return "" if is_known else f"it has not shown what version {synced.version} of the weights gives"
        verdict = self._prints.compare(worker, synced.expected, Reading(answer.scores, ()))
        if verdict.faults:
            return verdict.text
        self._sound[worker] = synced.version
        return ""


@dataclass(frozen=True)
class WeightedShare:
    """A job of the pool: a share with a version of the weights."""

    share: Share
    synced: Synced
    setup: Any
    weights: Any
    check: VersionCheck

    def begin(self, actor: Any) -> Any:
        """Start the job in an actor, and return the future of its answer."""
        return actor.play.remote([self.setup], self.synced.version, [self.weights], self.share)

    def fault_of(self, worker: str, answer: Answer) -> str:
        """Return the problem with the answer of a worker; empty for a valid one."""
        return self.check.fault_of(worker, answer, self.synced)


class Cluster:
    """The workers of a run, and their latest weights.

    Args:
        config: Settings of the run.
        make_task: Creates the task; called in every worker.
    """

    def __init__(self, config: TrainConfig, make_task: Callable[[TrainConfig], TaskSource]) -> None:
        self.config = config
        self.make_task = make_task
        self.pool = WorkerPool(config.rollout.ray)
        self._check = VersionCheck(config.rollout.temperature)
        self._state: tuple[object, ...] = ()
        self._setup: Any = None
        self._weights: Any = None
        self._synced: Synced | None = None
        self._metrics: dict[str, float] = {}
        self._metrics_lock = threading.Lock()
        self._lost = 0

    @property
    def version(self) -> int:
        """Number of weight syncs."""
        return 0 if self._synced is None else self._synced.version

    def job(self, model: LanguageModel, share: Share) -> WeightedShare:
        """Return a job of a share and the model's weights, which are put into Ray's object store if new."""
        began = time.perf_counter()
        ray = import_ray()
        if self._setup is None:
            own = _of_a_worker(self.config)
            files, probe = packed_files(model.name), self._check.probe(model)
            self._setup = ray.put(Setup(own, self.make_task, model.name, files, probe))
        state = tuple((id(each), each._version) for each in model.network.parameters())
        if self._synced is None or state != self._state:
            self._weights = ray.put(packed_weights(model.network))
            self._state = state
            self._synced = self._check.expect(model, self.version + 1)
        self.add({"time/hand_over_seconds": time.perf_counter() - began})
        return WeightedShare(share, self._synced, self._setup, self._weights, self._check)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add metrics of a worker."""
        with self._metrics_lock:
            for name, value in metrics.items():
                self._metrics[name] = self._metrics.get(name, 0.0) + value

    def metrics(self) -> dict[str, float]:
        """Return the summed metrics since the last call, and the number of lost workers."""
        with self._metrics_lock:
            found, self._metrics = self._metrics, {}
        lost, self._lost = self.pool.lost - self._lost, self.pool.lost
        return {**found, "rollout/workers_lost": float(lost)}

    def close(self) -> None:
        """End the workers."""
        self.pool.close()


def _of_a_worker(config: TrainConfig) -> TrainConfig:
    """Return the settings for a worker, which plays alone and sees only its reserved GPUs.

    With vLLM, its copy of the policy only receives weights and therefore stays in CPU memory.
    """
    settings = config.rollout
    share = -(-settings.groups // settings.ray.workers) * settings.group_size
    rollout = replace(settings, ray=RayConfig(), num_envs=settings.num_envs or share)
    if settings.schedule == "async":  # the learner's process plans groups and keeps the journal
        rollout = replace(rollout, schedule="continuous", journal=False)
    on_gpu = settings.ray.gpus and settings.sampler in ("auto", "transformers")
    return replace(config, rollout=rollout, device="cuda" if on_gpu else "cpu")
