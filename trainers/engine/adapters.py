"""Low-rank adapters (LoRA): adding, disabling and merging them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.quantized import dequantize
from turngym.errors import ConfigError, missing_extra, nearest
from turngym.seeding import stream_seed
from turngym.trainers.engine.sharing import copy_sharing_frozen

if TYPE_CHECKING:
    from peft import LoraConfig

ALL_LINEAR = "all-linear"
"""All linear layers except the output layer."""


def add_adapters(
    model: LanguageModel,
    rank: int,
    seed: int,
    alpha: int = 0,
    *,
    targets: Sequence[str] = (ALL_LINEAR,),
    rslora: bool = False,
) -> LanguageModel:
    """Add float32 low-rank adapters without dropout to linear layers, and freeze all other weights.

    Args:
        model: The model.
        rank: Rank of the adapters.
        seed: Seed of their initial weights.
        alpha: Scale of the adapters before division by the rank; 0 for twice the rank.
        targets: Names of the layers, such as ``q_proj`` or ``layers.3.mlp.up_proj``; :data:`ALL_LINEAR` for all.
        rslora: Divide the scale by the square root of the rank instead (rank-stabilised LoRA).

    Raises:
        ConfigError: A target is not a linear layer of the model.
        MissingExtra: The package peft is not installed.
    """
    try:
        from peft import inject_adapter_in_model
    except ImportError as error:
        raise missing_extra("low-rank adapters", "peft", "train") from error
    settings = lora_config(rank, alpha, _chosen(model, targets), rslora)
    network = model.network.requires_grad_(False)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model has `tie_word_embeddings")  # merging and exporting untie the head
        torch.manual_seed(stream_seed("adapters", seed) % 2**31)
        adapted = cast("PreTrainedModel", inject_adapter_in_model(settings, network))
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()  # an optimiser on 16-bit weights loses small updates
    return model.with_network(adapted)


def lora_config(rank: int, alpha: int, targets: str | Sequence[str], rslora: bool) -> LoraConfig:
    """Return peft's configuration of the adapters; see :func:`add_adapters`."""
    from peft import LoraConfig

    return LoraConfig(
        r=rank,
        lora_alpha=alpha or 2 * rank,
        target_modules=targets if isinstance(targets, str) else list(targets),
        lora_dropout=0.0,  # with dropout, ratios to the sampler's probabilities would be noise
        use_rslora=rslora,
        task_type="CAUSAL_LM",
    )


def _chosen(model: LanguageModel, targets: Sequence[str]) -> str | list[str]:
    """Return the targets in peft's form.

    Raises:
        ConfigError: There is no target, or one is not a linear layer of the model.
    """
    if tuple(targets) == (ALL_LINEAR,):
        return ALL_LINEAR
    layers = [name for name, module in model.network.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    for target in targets:
        if not any(name == target or name.endswith(f".{target}") for name in layers):
            known = sorted({name.rpartition(".")[2] for name in layers})
            raise ConfigError(f"{model.name} has no linear layer {target!r} for adapters. {nearest(target, known)}")
    return list(targets)


def adapted_layers(network: nn.Module) -> dict[str, Any]:
    """Return the layers with adapters, by name."""
    try:
        from peft.tuners.tuners_utils import BaseTunerLayer
    except ImportError:
        return {}
    return {name: module for name, module in network.named_modules() if isinstance(module, BaseTunerLayer)}


def adapter_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights of the adapters under their names in peft's files."""
    found = {}
    for name, layer in adapted_layers(network).items():
        for part in ("lora_A", "lora_B"):
            weight = getattr(layer, part)["default"].weight
            found[f"base_model.model.{name}.{part}.weight"] = weight.detach().cpu().contiguous()
    return found


def has_adapters(network: nn.Module) -> bool:
    """Return True if any layer has adapters."""
    return bool(adapted_layers(network))


@contextmanager
def adapters_off(network: nn.Module) -> Iterator[None]:
    """Disable a network's adapters within the context; does nothing without adapters."""
    layers = list(adapted_layers(network).values())
    trained = [(parameter, parameter.requires_grad) for parameter in network.parameters()]
    try:
        for layer in layers:
            layer.enable_adapters(False)
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)
        for parameter, requires_grad in trained:  # peft changes it
            parameter.requires_grad_(requires_grad)


def without_adapters(model: LanguageModel) -> LanguageModel:
    """Return a model with the adapters merged into its weights; the model itself without adapters.

    All other weights are shared with the given model.
    """
    layers = adapted_layers(model.network)
    if not layers:
        return model
    network = copy_sharing_frozen(model.network)
    dequantize(network)
    for name in layers:
        parent, _, child = name.rpartition(".")
        setattr(network.get_submodule(parent), child, _merged(network.get_submodule(name)))
    if any(layer is model.network.get_output_embeddings() for layer in layers.values()):
        network.config.get_text_config().tie_word_embeddings = False  # it is no longer the embedding
        network.config.tie_word_embeddings = False
    return model.with_network(network)


@torch.no_grad()
def _merged(layer: Any) -> nn.Module:
    """Return the base layer of some adapters, with new weights that include them."""
    base: nn.Module = layer.get_base_layer()
    weight = cast("Tensor", base.weight)
    total = weight
    for name in layer.active_adapters:
        total = total + layer.get_delta_weight(name)
    base.weight = nn.Parameter(total.to(weight.dtype), requires_grad=False)
    return base
