"""Gradient checkpointing: layers store only their input and are recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from turngym.errors import ConfigError
from turngym.trainers.engine.head import same_head
from turngym.trainers.engine.layouts.check import same_layouts
from turngym.trainers.engine.sharing import copy_sharing_all

_WAY_OUT = "pass --update.no-gradient-checkpointing"


def checkpointed_layers(network: nn.Module) -> list[GradientCheckpointingLayer]:
    """Return the layers of a network that can be checkpointed.

    Raises:
        ConfigError: There are none, or one has a dropout, which would be active during training.
    """
    layers = [(name, each) for name, each in network.named_modules() if isinstance(each, GradientCheckpointingLayer)]
    if not layers:
        raise ConfigError(f"a {type(network).__name__} has no layers that can be checkpointed: {_WAY_OUT}.")
    for name, layer in layers:
        for inner, module in layer.named_modules(prefix=name):
            for setting, rate in _dropouts(module):
                raise ConfigError(
                    f"checkpointed layers run in train mode, and {inner}{setting} is {rate:g}: set that dropout to 0 "
                    f"in the model's config.json, or {_WAY_OUT}."
                )
    return [layer for _, layer in layers]


def _dropouts(module: nn.Module) -> list[tuple[str, float]]:
    """Return a module's own nonzero dropouts."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return [("", module.p)] if module.p else []
    own = [(name, value) for name, value in vars(module).items() if "drop" in name and isinstance(value, float)]
    return [(f".{name}", value) for name, value in own if value]


def run_apart(network: PreTrainedModel) -> PreTrainedModel:
    """Return a network that shares all tensors with another one but has its own layer objects.

    An update can then checkpoint or compile layers while other threads sample. Quantized layers cannot be copied
    without their weights, so a quantized network is returned unchanged.
    """
    if getattr(network, "hf_quantizer", None) is not None:
        return network
    found = copy_sharing_all(network)
    same_head(found, network)
    same_layouts(found, network)
    return found


@contextmanager
def checkpointing(layers: Sequence[GradientCheckpointingLayer]) -> Iterator[None]:
    """Checkpoint layers within the context.

    Only layers in train mode are checkpointed, and these leave the KV cache empty (in transformers before 5.24 even
    without gradients). They are therefore in train mode only within the context, where they cannot be used for
    sampling: updates use the layers of :func:`run_apart`.
    """
    before = [layer.training for layer in layers]
    layer: Any
    for layer in layers:
        layer.training = layer.gradient_checkpointing = True
        layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)
    try:
        yield
    finally:
        for layer, was in zip(layers, before, strict=True):
            layer.training, layer.gradient_checkpointing = was, False
