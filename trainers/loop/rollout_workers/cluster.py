"""What rollout workers on a Ray cluster play with: settings, weights of a version, and a check that they arrived."""

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
    """A version of the weights that workers receive.

    Args:
        version: Number of weight syncs before, and this one.
        expected: Probe values that the learner computes with it.
    """

    version: int
    expected: Expected


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
        self._sound: dict[str, int] = {}

    def probe(self, model: LanguageModel) -> Sequence[Sequence[int]]:
        """Return the sequences that workers compute with new weights."""
        if self._prints is None:
            self._prints = Fingerprints.of(model, self.temperature)
        return self._prints.sequences

    def expect(self, model: LanguageModel, version: int) -> Synced:
        """Return what a version of the weights gives, when it is synced."""
        self.probe(model)
        assert self._prints is not None
        return Synced(version, self._prints.expect(model.network))

    def fault_of(self, worker: str, answer: Answer, synced: Synced) -> str:
        """Return what is wrong with the weights that an answer was played with, in words; empty for sound ones.

        Args:
            worker: Name of the worker.
            answer: Its answer.
            synced: The weights that it was to play with.
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
    """A job of the pool: a share, and the version of the weights that it is played with."""

    share: Share
    synced: Synced
    setup: Any
    weights: Any
    check: VersionCheck

    def begin(self, actor: Any) -> Any:
        """Start it in an actor, and return the future of its answer."""
        return actor.play.remote([self.setup], self.synced.version, [self.weights], self.share)

    def fault_of(self, worker: str, answer: Answer) -> str:
        """Return what is wrong with the answer of a worker, in words; empty for a sound one."""
        return self.check.fault_of(worker, answer, self.synced)


class Cluster:
    """The workers of a run, and the weights that they last received.

    Args:
        config: Settings of the run.
        make_task: Makes the task that plays; called in every worker.
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
        """Return a share as a job with the model's weights, which are put into Ray's object store if they are new."""
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
        """Return the metrics added since the last call, summed, and how many workers were lost."""
        with self._metrics_lock:
            found, self._metrics = self._metrics, {}
        lost, self._lost = self.pool.lost - self._lost, self.pool.lost
        return {**found, "rollout/workers_lost": float(lost)}

    def close(self) -> None:
        """End the workers."""
        self.pool.close()


def _of_a_worker(config: TrainConfig) -> TrainConfig:
    """Return the settings as they hold inside of a worker, which plays alone and sees only GPUs that it reserved.

    With vLLM its own copy of the policy receives weights and computes nothing, so that it stays in main memory.
    """
    settings = config.rollout
    share = -(-settings.groups // settings.ray.workers) * settings.group_size
    rollout = replace(settings, ray=RayConfig(), num_envs=settings.num_envs or share)
    if settings.schedule == "async":  # the learner's process plans groups and keeps the journal
        rollout = replace(rollout, schedule="continuous", journal=False)
    on_gpu = settings.ray.gpus and settings.sampler in ("auto", "transformers")
    return replace(config, rollout=rollout, device="cuda" if on_gpu else "cpu")
