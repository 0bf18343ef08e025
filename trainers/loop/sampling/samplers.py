"""Samplers for training, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vllm.config import VllmConfig
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import DTYPES, Dtype
from turngym.trainers.settings.rollout import SamplerName


class RolloutSampler(Protocol):
    """Interface of a sampler for the training loop."""

    def metrics(self) -> Mapping[str, float]:
        """Return metrics since the last call."""
        ...

    def rest(self) -> None:
        """Free memory for the learner; called after the rollouts of an iteration."""
        ...


@dataclass(frozen=True)
class SamplerSetup:
    """Arguments of a sampler.

    Args:
        config: Settings of the run.
        model: The policy.
        source: Folder or Hub name of a model with the policy's architecture.
        folder: Folder for the sampler's files, such as the run folder.
        version: Returns the number of iterations of training of the current policy.
    """

    config: TrainConfig
    model: LanguageModel
    source: str
    folder: Path
    version: Callable[[], int] = lambda: -1

    @property
    def dtype(self) -> Dtype:
        """Data type of the policy's weights."""
        return DTYPES[self.config.precision]

    @property
    def vllm(self) -> VllmConfig:
        """VLLM's options, with the data type of its weights."""
        config = self.config.rollout.vllm
        return replace(config, dtype=self.dtype) if config.dtype == "auto" else config


Factory: TypeAlias = Callable[[SamplerSetup], AbstractContextManager[RolloutSampler]]


class OwnNetwork:
    """Sampling with the policy's own network."""

    def metrics(self) -> Mapping[str, float]:
        """Return no metrics; the task counts prompt tokens."""
        return {}

    def rest(self) -> None:
        """Free nothing."""


@contextmanager
def own_network(setup: SamplerSetup | None = None) -> Iterator[RolloutSampler]:
    """Let the policy generate with its own network."""
    yield OwnNetwork()


def _vllm(setup: SamplerSetup) -> AbstractContextManager[RolloutSampler]:
    from turngym.trainers.loop.sampling.vllm_rollouts import vllm_rollouts

    return vllm_rollouts(setup.model, setup.source, setup.vllm, setup.config.rollout.temperature)


def _servers(setup: SamplerSetup) -> AbstractContextManager[RolloutSampler]:
    from turngym.trainers.loop.sampling.served_rollouts import served_rollouts

    return served_rollouts(setup)


_SAMPLERS: Mapping[SamplerName, Factory] = {
    "auto": own_network,  # a run reports its own choice instead
    "transformers": own_network,
    "vllm": _vllm,
    "vllm-server": _servers,
}


def rollouts_of(setup: SamplerSetup) -> AbstractContextManager[RolloutSampler]:
    """Return the context in which the policy generates with the configured sampler."""
    return _SAMPLERS[setup.config.rollout.sampler](setup)
