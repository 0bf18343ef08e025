"""The tensors of a checkpoint: each part of it is one file, or a folder of the pieces that several ranks wrote.

Both are safetensors; nothing is unpickled. A folder holds a file of each rank, whose header says where in the whole
tensors its pieces belong, as ``HuggingFaceStorageWriter`` of torch writes it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file

from turngym.lazy import Tensor, torch

POLICY = "policy"


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder is a checkpoint of a training run."""
    return _is_stored(folder, POLICY)


def _is_stored(folder: Path, part: str) -> bool:
    """Return whether a checkpoint has a part of that name."""
    return _file(folder, part).is_file() or _is_in_pieces(folder, part)


def _is_in_pieces(folder: Path, part: str) -> bool:
    """Return whether a part is a folder of several files."""
    return not _file(folder, part).is_file() and any((folder / part).glob("*.safetensors"))


def files_of(folder: Path, part: str) -> list[Path]:
    """Return the files of a part."""
    return sorted((folder / part).glob("*.safetensors")) if _is_in_pieces(folder, part) else [_file(folder, part)]


def stored_shapes(folder: Path, part: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the whole tensors of a part by name."""
    if _is_in_pieces(folder, part):
        return {name: tuple(each.size) for name, each in _entries(folder / part).items()}
    with safe_open(_file(folder, part), framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def read_tensors(folder: Path, part: str) -> dict[str, Tensor]:
    """Return the whole tensors of a part.

    Raises:
        OSError: It is missing.
        SafetensorError: It is damaged.
    """
    if not _is_in_pieces(folder, part):
        return load_file(_file(folder, part))
    entries = _entries(folder / part)
    found = {name: torch.empty(each.size, dtype=each.properties.dtype) for name, each in entries.items()}
    read_into(folder, part, found)
    return found


def read_into(folder: Path, part: str, targets: Mapping[str, Tensor]) -> None:
    """Fill tensors with those of the same names; of a distributed tensor each rank reads its own piece.

    Args:
        folder: The checkpoint.
        part: The part.
        targets: Target that is filled.
    """
    if _is_in_pieces(folder, part):
        _entries(folder / part)
        _read_pieces(folder / part, targets)
        return
    from torch.distributed.tensor import DTensor, distribute_tensor

    with safe_open(_file(folder, part), framework="pt") as file, torch.no_grad():
        for name, target in targets.items():
            whole: Tensor = file.get_tensor(name).to(target.device)
            if isinstance(target, DTensor):
                own = distribute_tensor(whole, target.device_mesh, target.placements, src_data_rank=None)
                target.to_local().copy_(own.to_local())
            else:
                target.copy_(whole)


def _read_pieces(folder: Path, targets: Mapping[str, Tensor]) -> None:
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.state_dict_loader import load

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # each rank reads for itself
        try:
            load(dict(targets), storage_reader=_reader(folder), no_dist=True)
        except CheckpointException as error:  # is not an Exception
            raise first_failure(error) from None


def first_failure(error: Any) -> Exception:
    """Return what failed on the first of the ranks that failed, given a ``CheckpointException`` of torch."""
    failures = [error.failures[rank][0] for rank in sorted(error.failures)]
    return next((each for each in failures if isinstance(each, Exception)), RuntimeError(str(error)))


def _file(folder: Path, part: str) -> Path:
    return folder / f"{part}.safetensors"


def _entries(folder: Path) -> Mapping[str, Any]:
    """Return shape and type of the whole tensors of a folder by name.

    Raises:
        ValueError: A piece is missing, which torch would leave as it is.
    """
    entries: Mapping[str, Any] = _reader(folder).read_metadata().state_dict_metadata
    for name, entry in entries.items():
        if sum(math.prod(chunk.sizes) for chunk in entry.chunks) != math.prod(entry.size):
            raise ValueError(f"{folder} lacks pieces of {name}")
    return entries


def _reader(folder: Path) -> Any:
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    return HuggingFaceStorageReader(str(folder))
