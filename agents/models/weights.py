"""Detection of changes of a network's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class WeightsWatch:
    """Tells whether a network is still the same: its tensors, where their numbers lie, and how often they were written.

    >>> layer, watch = nn.Linear(2, 2), WeightsWatch()
    >>> watch.has_changed(layer), watch.has_changed(layer)
    (True, False)
    >>> _ = layer.requires_grad_(False).weight.mul_(2)
    >>> watch.has_changed(layer)
    True
    """

    def __init__(self) -> None:
        self._tensors: list[torch.Tensor] = []  # kept, so that no other tensor can get the id of one of them
        self._state: tuple[object, ...] = ()

    def has_changed(self, network: nn.Module) -> bool:
        """Return whether the weights differ from those of the last call, which is so at the first one."""
        tensors = [*network.parameters(), *network.buffers()]
        state = tuple((id(t), -1 if t.is_inference() else t._version, t.data_ptr()) for t in tensors)
        if state == self._state:
            return False
        self._tensors, self._state = tensors, state
        return True


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Put a network in eval mode, and modules that were in train mode back into it afterwards.

    Layers in train mode that checkpoint gradients leave the cache empty, so that samples would be wrong.
    """
    training = [module for module in network.modules() if module.training]
    if training:
        network.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
