"""Conversion of trained weights to arrays that Ray passes on without a copy, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from turngym.errors import ModelError
from turngym.trainers.engine.adapters import has_adapters

Bytes: TypeAlias = NDArray[np.uint8]


def _trained_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return the trained tensors, tied weights once: adapters if there are any, otherwise all weights."""
    parts = ("lora_",) if has_adapters(network) else ("",)
    return {name: each.detach() for name, each in network.named_parameters() if any(part in name for part in parts)}


def packed_weights(network: nn.Module) -> dict[str, Bytes]:
    """Return the bytes of the trained tensors, in the network's precision.

    >>> sender, receiver = nn.Linear(2, 2).bfloat16(), nn.Linear(2, 2).bfloat16()
    >>> load_packed(receiver, packed_weights(sender))
    >>> torch.equal(sender.weight, receiver.weight)
    True
    """
    return {
        name: tensor.cpu().contiguous().flatten().view(torch.uint8).numpy()
        for name, tensor in _trained_tensors(network).items()
    }


def load_packed(network: nn.Module, weights: Mapping[str, Bytes]) -> None:
    """Load trained tensors into a network of the same architecture.

    Raises:
        ModelError: The network has other tensors.
    """
    own = _trained_tensors(network)
    sizes = {name: tensor.numel() * tensor.element_size() for name, tensor in own.items()}
    given = {name: each.size for name, each in weights.items()}
    if sizes != given:
        wrong = sorted(name for name in sizes.keys() | given.keys() if sizes.get(name) != given.get(name))
        raise ModelError(
            f"the weights handed to a rollout worker are of another model: {', '.join(wrong[:3])} differ. Use the same "
            "version of turngym and transformers on all machines."
        )
    with torch.no_grad():
        for name, tensor in own.items():
            found = torch.from_numpy(weights[name].copy())  # Ray's arrays are read-only
            tensor.copy_(found.view(tensor.dtype).view(tensor.shape))


def packed_files(source: str) -> dict[str, Bytes]:
    """Return the files of a model's folder, for machines without it; none for a Hub name or a GGUF file."""
    folder = Path(source)
    if not (folder / "config.json").is_file():
        return {}
    return {path.name: np.fromfile(path, np.uint8) for path in sorted(folder.iterdir()) if path.is_file()}


def unpack_files(files: Mapping[str, Bytes], folder: Path) -> None:
    """Write the files of a model's folder."""
    for name, content in files.items():
        content.tofile(folder / name)
