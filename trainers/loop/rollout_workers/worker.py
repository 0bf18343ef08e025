"""A rollout worker: environments, a copy of the policy, and a sampler."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory
from turngym.system.scratch import scratch_root
from turngym.trainers.engine.probe_sequences import probe_scores
from turngym.trainers.loop.rollout_workers.weights import Bytes, load_packed, unpack_files
from turngym.trainers.loop.sampling.samplers import SamplerSetup, rollouts_of
from turngym.trainers.loop.setup import with_adapters
from turngym.trainers.loop.tasks.parts import Part
from turngym.trainers.loop.tasks.task import EnvTask, TaskSource
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import DTYPES


class _Progress:
    """Work done by the policy in this process."""

    computed = 0


def _count(*event: object) -> None:
    """Count a call of the policy; a function, so that copies of a network share it."""
    _Progress.computed += 1


class Share(Protocol):
    """Episodes for one worker."""

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        """Play the episodes."""
        ...


@dataclass(frozen=True)
class Gathering:
    """A part of an iteration's rollouts.

    Args:
        iteration: Number of the iteration.
        attempt: Number of earlier rollouts of the iteration.
        greedy: Play each instance once, with greedy decoding.
        part: Indices of groups.
    """

    iteration: int
    attempt: int
    greedy: bool
    part: Part

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        """Play the episodes."""
        return task.gather(model, self.iteration, self.attempt, self.greedy, self.part)


@dataclass(frozen=True)
class Branching:
    """Episodes that branch from turns of others.

    Args:
        iteration: Number of the iteration.
        branches: The branching points.
        first: Number of earlier branched episodes of the iteration.
    """

    iteration: int
    branches: Sequence[Branch]
    first: int

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        """Play the episodes."""
        return task.branch(model, self.iteration, self.branches, self.first)


@dataclass(frozen=True)
class Planned:
    """Whole groups of an asynchronous run.

    Args:
        specs: Their episodes, numbered through the run.
    """

    specs: Sequence[EpisodeSpec]

    def play(self, task: TaskSource, model: LanguageModel) -> list[Trajectory]:
        """Play the episodes."""
        assert isinstance(task, EnvTask)
        return task.play_noted(task.agent(model, 0), self.specs)


@dataclass(frozen=True)
class Setup:
    """Initial state of all workers of a run.

    Args:
        config: Settings of the run for a worker.
        make_task: Makes the task.
        source: Folder or name of the model.
        files: Files of the model; empty if every machine has it under ``source``.
        probe: Sequences that identify a worker's weights.
    """

    config: TrainConfig
    make_task: Callable[[TrainConfig], TaskSource]
    source: str
    files: Mapping[str, Bytes]
    probe: Sequence[Sequence[int]] = ()


class Answer(NamedTuple):
    """Result of a worker.

    Args:
        trajectories: The episodes of a share.
        metrics: Metrics of its task.
        version: Version of its weights.
        scores: Probe values of these weights, ``[token]``; None if in an earlier answer.
    """

    trajectories: list[Trajectory]
    metrics: dict[str, float]
    version: int
    scores: Tensor | None


class RolloutWorker:
    """Rollout worker in a Ray actor, with a thread that plays and one that answers :meth:`progress`.

    Args:
        path: The learner's import path, appended to this machine's.
    """

    def __init__(self, path: Sequence[str]) -> None:
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._stack = ExitStack()
        self._version = -1
        self._model: LanguageModel | None = None
        self._task: TaskSource | None = None
        self._probe: Sequence[Sequence[int]] = ()

    def where(self) -> tuple[str, int]:
        """Return the ids of machine and process."""
        import ray

        return ray.get_runtime_context().get_node_id(), os.getpid()

    def progress(self) -> int:
        """Return a number that grows while the policy computes."""
        return _Progress.computed

    def play(self, setup: Sequence[Any], version: int, weights: Sequence[Any], share: Share) -> Answer:
        """Play a share of an iteration.

        Args:
            setup: Reference of the :class:`Setup`, in a list, so that it is fetched only once.
            version: Version of the weights.
            weights: Reference of the weights, in a list, so that they are fetched only if new.
            share: The share.
        """
        import ray

        if self._model is None or self._task is None:
            begun: Setup = ray.get(setup[0])
            self._model, self._task = self._begin(begun)
            self._probe = begun.probe
        scores = None
        if version != self._version:
            load_packed(self._model.network, ray.get(weights[0]))
            scores, _ = probe_scores(self._model.network, self._probe)
            self._version = version
        played = share.play(self._task, self._model)
        return Answer(played, dict(self._task.metrics()), self._version, scores)

    def close(self) -> None:
        """Close environments and sampler, and remove files."""
        self._stack.close()

    def _begin(self, setup: Setup) -> tuple[LanguageModel, TaskSource]:
        config, source = setup.config, setup.source
        if config.threads:
            torch.set_num_threads(config.threads)
        with ExitStack() as while_loading:
            if setup.files:
                is_read_again = config.rollout.sampler in ("vllm", "vllm-server")  # by vLLM
                keeps = self._stack if is_read_again else while_loading
                source = keeps.enter_context(TemporaryDirectory(prefix="worker-", dir=scratch_root()))
                unpack_files(setup.files, Path(source))
            loaded = load_model(source, DTYPES[config.precision], config.device, config.attention, config.quantize)
        model = with_adapters(config, loaded)
        model.network.get_input_embeddings().register_forward_hook(_count)
        self._stack.enter_context(rollouts_of(SamplerSetup(config, model, source, Path(source))))
        if generate := model.generate:

            def counted(*arguments: Any) -> Any:
                _count()
                return generate(*arguments)

            model.generate = counted
        _count()  # loading has finished
        task = setup.make_task(config)
        self._stack.callback(task.close)
        return model, task
