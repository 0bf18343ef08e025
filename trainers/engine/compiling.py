"""Compilation of a network's layers for the training pass by ``torch.compile``, which fuses small kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from turngym.errors import ConfigError

_BACKEND = "inductor"


class CompiledLayers:
    """The decoder layers of networks, compiled only within :meth:`active`; sampling is not affected.

    Args:
        networks: The networks; compilation happens in their first pass.

    Raises:
        ConfigError: A network has no decoder layers that transformers knows.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self._compiled: list[tuple[Any, Any]] = []
        for network in networks:
            layers = [each for each in network.modules() if isinstance(each, GradientCheckpointingLayer)]
            if not layers:
                raise ConfigError(
                    f"a {type(network).__name__} has no layers that can be compiled: leave out --update.compile."
                )
            self._compiled += [(layer, torch.compile(layer._call_impl, backend=_BACKEND)) for layer in layers]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Run the layers compiled within the context; a layer that cannot be compiled runs uncompiled."""
        with torch._dynamo.config.patch(suppress_errors=True):
            for layer, compiled in self._compiled:
                layer._compiled_call_impl = compiled
            try:
                yield
            finally:
                for layer, _ in self._compiled:
                    layer._compiled_call_impl = None
