"""Rollouts with vLLM during training, in the learner's process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from turngym.agents.models.generate import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.models.vllm.sampler import VllmSampler
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError, ModelError
from turngym.trainers.engine.adapters import without_adapters
from turngym.trainers.engine.fingerprint import Fingerprints, handed_over


class Follower:
    """Sampling with the policy's current weights, synced to vLLM after every change.

    Args:
        sampler: vLLM with a model of the policy's architecture.
        model: The policy; low-rank adapters are merged for syncs.
        temperature: Sampling temperature, also used for comparisons with the policy.
    """

    def __init__(self, sampler: VllmSampler, model: LanguageModel, temperature: float = 1.0) -> None:
        self.sampler = sampler
        self.model = model
        self.loads = 0
        """Number of weight syncs."""
        self._state: tuple[object, ...] = ()
        format = sampler.config.dtype
        self._format = format if format in ("float32", "bfloat16", "float16") else "auto"
        self._prints = Fingerprints.of(model, temperature, self._format, sampler.max_model_len)

    def generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt."""
        self.follow()
        return self.sampler.generate(prompts, uniforms, sampling)

    def metrics(self) -> Mapping[str, float]:
        """Return no metrics; syncs are part of the rollout time."""
        return {}

    def rest(self) -> None:
        """Do nothing: vLLM keeps its memory."""

    def follow(self) -> None:
        """Sync the policy's weights to vLLM if they have changed, and verify them.

        Raises:
            ModelError: vLLM does not use the synced weights.
        """
        state = tuple((id(p), p._version) for p in self.model.network.parameters())
        if state != self._state:
            self.sampler.load_weights(without_adapters(self.model).network.state_dict())
            self._check()
            self._state = state
            self.loads += 1

    def _check(self) -> None:
        expected = self._prints.expect(handed_over(self.model, self._format))
        reading = self._prints.read(self.sampler.generate, self.sampler.score)
        verdict = self._prints.compare("vllm", expected, reading)
        if verdict.faults:
            raise ModelError(f"vLLM was given new weights, and {verdict.text}: generate with the backend transformers.")


@contextmanager
def vllm_rollouts(
    model: LanguageModel, source: str, config: VllmConfig, temperature: float = 1.0
) -> Iterator[Follower]:
    """Context in which vLLM generates for a model.

    Args:
        model: The policy.
        source: Folder or Hub name of a model with the policy's architecture.
        config: vLLM settings.
        temperature: Temperature of the rollouts.

    Raises:
        ConfigError: The policy is not on the GPU that vLLM uses in this process.
    """
    device = model.network.device
    if device.index:
        raise ConfigError(
            f"vLLM takes the first GPU that this process sees, and the policy is on {device}: start it with "
            f"CUDA_VISIBLE_DEVICES={device.index} and --device cuda."
        )
    sampler = VllmSampler(source, config, model.stop_ids)
    follower = Follower(sampler, model, temperature)
    model.generate, model.longest = follower.generate, sampler.max_model_len
    try:
        yield follower
    finally:
        model.generate, model.longest = None, 0
        sampler.close()
