"""Number of parameters of a model, without loading its weights."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import try_to_load_from_cache
from transformers import AutoConfig, AutoModelForCausalLM

from turngym.agents.models.checkpoint_tensors import POLICY, files_of, is_checkpoint
from turngym.agents.models.sources import bases_of_adapter, is_adapter, loading_model, require_model
from turngym.errors import MissingExtra, ModelError

_LARGEST_HEADER = 100_000_000
_INDEX = "model.safetensors.index.json"


def parameter_count(source: str) -> int:
    """Return how many parameters a model has.

    The shapes come from the headers of safetensors and GGUF files; without such files the model is built from its
    ``config.json`` on the meta device.

    Args:
        source: A folder or a hub name that transformers can load, a ``.gguf`` file, or a checkpoint of a run.

    Raises:
        ModelError: There is no such model.
        MissingExtra: A GGUF file without the package gguf.
    """
    path = Path(source)
    if path.suffix == ".gguf":
        return _in_gguf(path)
    if is_adapter(path):
        return parameter_count(bases_of_adapter(path)[-1])
    try:
        return sum(_in_header(file) for file in _weights(_folder(source)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _by_config(source)


def _folder(source: str) -> Path:
    """Return the folder of a model: the given one, or the one in the hub cache."""
    if Path(source).is_dir():
        return Path(source)
    cached = try_to_load_from_cache(source, "config.json")
    if not isinstance(cached, str):
        raise FileNotFoundError(source)
    return Path(cached).parent


def _weights(folder: Path) -> Sequence[Path]:
    """Return the files of a model's weights.

    Raises:
        FileNotFoundError: There are none in the format safetensors.
    """
    if is_checkpoint(folder):
        return files_of(folder, POLICY)
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    names = set(json.loads((folder / _INDEX).read_text("utf8"))["weight_map"].values())
    if any(Path(name).name != name for name in names):
        raise ValueError(f"{folder / _INDEX} names files outside of its folder")
    return [folder / name for name in sorted(names)]


def _in_header(file: Path) -> int:
    """Return how many numbers the tensors of a safetensors file have: 8 bytes of length, then JSON with all shapes."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= _LARGEST_HEADER:
            raise ValueError(f"{file} has a header of {length} bytes")
        header: dict[str, Any] = json.loads(stream.read(length))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def _by_config(source: str) -> int:
    require_model(source)
    with loading_model(source), torch.device("meta"):
        network = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    return int(network.num_parameters())


def _in_gguf(path: Path) -> int:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingExtra('reading a GGUF file needs the package gguf: pip install "turngym[gguf]".') from error
    if not path.is_file():
        raise ModelError(f"there is no file {path}: pass an existing .gguf file, a model folder or a hub name.")
    with loading_model(str(path)):
        return sum(int(tensor.n_elements) for tensor in GGUFReader(path).tensors)
