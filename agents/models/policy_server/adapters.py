"""Low-rank adapters from files of peft, added to a network's weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from turngym.agents.models.policy_server.requests import Refused

_PREFIX = "base_model.model."
_LARGEST_SETTINGS = 2**20
_LARGEST = 2**20
"""Largest rank and scale of an adapter."""
_UNSERVED: Mapping[str, tuple[Any, ...]] = {
    "bias": (None, "none"),
    "use_dora": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "modules_to_save": (None, []),
    "lora_bias": (None, False),
    "trainable_token_indices": (None,),
}
"""Options of peft that would change what is computed, with the values that do not."""


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter.

    Args:
        layers: Name of a layer's weight -> the two factors of what is added to it.
        scale: Their weight.
    """

    layers: Mapping[str, tuple[Tensor, Tensor]]
    scale: float

    def add_to(self, network: nn.Module) -> dict[str, Tensor]:
        """Add it to a network's weights; returns the weights that were there."""
        below = {name: network.get_parameter(name).detach().clone() for name in self.layers}
        self._add(network)
        return below

    def merge_into(self, network: PreTrainedModel) -> None:
        """Add it to a network's weights for good; an output layer with an adapter no longer is the embedding."""
        head = network.get_output_embeddings()
        if any(network.get_submodule(name.rpartition(".")[0]) is head for name in self.layers):
            head.weight = nn.Parameter(head.weight.detach().clone(), requires_grad=False)
            network.config.get_text_config().tie_word_embeddings = False
            network.config.tie_word_embeddings = False
        self._add(network)

    @torch.no_grad()
    def _add(self, network: nn.Module) -> None:
        for name, (first, second) in self.layers.items():
            weight = network.get_parameter(name)
            change = self.scale * (second.to(weight.device).float() @ first.to(weight.device).float())
            if isinstance(network.get_submodule(name.rpartition(".")[0]), Conv1D):
                change = change.T
            weight.copy_((weight.float() + change).to(weight.dtype))


def read_adapter(folder: Path, network: nn.Module) -> Adapter:
    """Read an adapter that fits a network.

    Args:
        folder: As peft writes it: ``adapter_config.json`` and ``adapter_model.safetensors``.
        network: The network.

    Raises:
        Refused: It cannot be read, does not fit, or has options that are not served.
    """
    scale, rank = _scale_and_rank(folder / "adapter_config.json")
    try:
        tensors = load_file(folder / "adapter_model.safetensors")
    except (SafetensorError, OSError) as error:
        raise Refused(f"{folder.name}/adapter_model.safetensors cannot be read: {error}"[:300]) from error
    layers: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        layer, _, part = key.removeprefix(_PREFIX).removesuffix(".weight").rpartition(".")
        if not key.startswith(_PREFIX) or part not in ("lora_A", "lora_B"):
            raise Refused(f"{key[:100]!r} is not a weight of an adapter on linear layers")
        if not is_finite(tensor):
            raise Refused(f"{key[:100]!r} holds numbers that are not finite")
        layers.setdefault(layer, {})[part] = tensor
    if not layers:
        raise Refused("the adapter is empty")
    factors = {f"{layer}.weight": _factors(network, layer, parts) for layer, parts in layers.items()}
    for name, (first, _) in factors.items():
        if first.shape[0] != rank:
            raise Refused(
                f"the factors of {name[:100]!r} have rank {first.shape[0]}, and adapter_config.json says {rank}"
            )
    return Adapter(factors, scale)


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite.

    >>> is_finite(torch.tensor([1.0, 2.0])), is_finite(torch.tensor([1.0, float("inf")]))
    (True, False)
    """
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def _factors(network: nn.Module, name: str, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    try:
        layer = network.get_submodule(name)
    except AttributeError as error:
        raise Refused(f"the model has no layer {name[:100]!r} for the adapter") from error
    if not isinstance(layer, nn.Linear | Conv1D) or set(parts) != {"lora_A", "lora_B"}:
        raise Refused(f"the adapter of {name[:100]!r} is not whole, or its layer is not linear")
    first, second = parts["lora_A"], parts["lora_B"]
    shape = tuple(layer.weight.shape)
    wide, high = (shape[0], shape[1]) if isinstance(layer, Conv1D) else (shape[1], shape[0])
    if first.ndim != 2 or second.ndim != 2 or (first.shape[1], second.shape[0]) != (wide, high):
        raise Refused(f"the adapter of {name[:100]!r} has the shape of another model's")
    if first.shape[0] != second.shape[1]:
        raise Refused(f"the factors of {name[:100]!r} have different ranks")
    return first, second


def _scale_and_rank(file: Path) -> tuple[float, int]:
    """Return the weight and the rank of an adapter, from its settings.

    Raises:
        Refused: They are unusable.
    """
    try:
        if file.stat().st_size > _LARGEST_SETTINGS:
            raise Refused("adapter_config.json is too large")
        content = json.loads(file.read_text("utf8"))
        kind, rank, alpha = content["peft_type"], content["r"], content["lora_alpha"]
        others = [key for key, neutral in _UNSERVED.items() if content.get(key) not in neutral]
        is_stabilised = content.get("use_rslora", False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(f"adapter_config.json cannot be used: {error!r}"[:300]) from error
    if kind != "LORA" or others:
        raise Refused(f"only plain LoRA is served: {', '.join(others) or 'peft_type'} of adapter_config.json is other")
    if type(rank) is not int or not 1 <= rank <= _LARGEST:
        raise Refused(f"r of adapter_config.json must be a whole number from 1 to {_LARGEST}")
    if type(alpha) not in (int, float) or not -_LARGEST <= alpha <= _LARGEST:
        raise Refused(f"lora_alpha of adapter_config.json must be a number of at most {_LARGEST}")
    return float(alpha / (math.sqrt(rank) if is_stabilised is True else rank)), rank
