"""The sampler's copy of the policy, whose weights change between calls of the sampler only."""

from __future__ import annotations

import threading

from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.engine.sharing import copy_sharing_frozen, frozen_parameters, own_tensors


class SamplerWeights:
    """A copy of the policy that samples while the policy itself is being updated; frozen weights are shared.

    The learner publishes new weights at any time and never waits. The thread that samples takes them over with
    :meth:`refresh` before it samples again, so that no completion is written by two versions, and what was computed
    with the old weights is dropped: the tensors change in place, which caches watch for.

    Args:
        model: The policy.
        copies: False samples with the policy itself, where nothing is played while it is being updated. The last bits
            of a copy's numbers can differ, since its tensors lie elsewhere in memory.
    """

    def __init__(self, model: LanguageModel, copies: bool = True) -> None:
        self.copies = copies
        self.model = model.with_network(_copy(model.network)) if copies else model
        """Sampler, with a ``generate`` of its own for servers and vLLM."""
        self.version = 0
        """Version of the weights that sample now."""
        self.newest = 0
        """Version of the weights that were published last."""
        self._lock = threading.Lock()
        self._staged: tuple[int, dict[str, Tensor]] | None = None

    def publish(self, network: PreTrainedModel, version: int) -> None:
        """Hand over the weights of a new version."""
        own = own_tensors(network, frozen_parameters(network)) if self.copies else {}
        staged = version, {name: tensor.detach().clone() for name, tensor in own.items()}
        with self._lock:
            self._staged, self.newest = staged, version

    def refresh(self) -> int:
        """Take over the newest weights; returns their version. Only the thread that samples may call it."""
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
