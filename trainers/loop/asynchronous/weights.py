"""The sampler's copy of the policy, whose weights change only between calls of the sampler."""

from __future__ import annotations

import threading

from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.engine.sharing import copy_sharing_frozen, frozen_parameters, own_tensors


class SamplerWeights:
    """Copy of the policy for sampling during updates; frozen weights are shared.

    The learner publishes new weights at any time without waiting. The sampling thread loads them with :meth:`refresh`
    between calls, so no completion mixes versions. Tensors change in place, by which caches of old weights are
    invalidated.

    Args:
        model: The policy.
        copies: If False, the policy itself samples, for rollouts that do not overlap with updates. The last bits of a
            copy's outputs may differ, because its tensors are elsewhere in memory.
    """

    def __init__(self, model: LanguageModel, copies: bool = True) -> None:
        self.copies = copies
        self.model = model.with_network(_copy(model.network)) if copies else model
        """Sampler, with a separate ``generate`` for servers and vLLM."""
        self.version = 0
        """Version of the sampling weights."""
        self.newest = 0
        """Version of the latest published weights."""
        self._lock = threading.Lock()
        self._staged: tuple[int, dict[str, Tensor]] | None = None

    def publish(self, network: PreTrainedModel, version: int) -> None:
        """Publish the weights of a new version."""
        own = own_tensors(network, frozen_parameters(network)) if self.copies else {}
        staged = version, {name: tensor.detach().clone() for name, tensor in own.items()}
        with self._lock:
            self._staged, self.newest = staged, version

    def refresh(self) -> int:
        """Load the newest weights and return their version; only for the sampling thread."""
        with self._lock:
            staged, self._staged = self._staged, None
        if staged is not None:
            self.version, tensors = staged
            self.model.version = self.version
            if tensors:
                self.model.network.load_state_dict(tensors, strict=False)
        return self.version


def _copy(network: PreTrainedModel) -> PreTrainedModel:
    found: PreTrainedModel = copy_sharing_frozen(network)
    found.requires_grad_(False)
    found.eval()
    return found
