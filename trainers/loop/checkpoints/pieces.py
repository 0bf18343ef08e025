"""Parts of a checkpoint written by all ranks in parallel, through torch.distributed.checkpoint.

The default storage has a pickled index. The one for safetensors has the positions of pieces in each file's header, so
nothing is unpickled, and any number of ranks can read them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_saver import save

from turngym.agents.models.checkpoint_tensors import first_failure, read_into, stored_shapes
from turngym.errors import CheckpointError
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.sharing import own_tensors


def divided_tensors(module: nn.Module, *, trained_only: bool) -> dict[str, Tensor]:
    """Return the tensors of a sharded network by name, tied ones once.

    Args:
        module: The network.
        trained_only: Exclude frozen tensors, which belong to another model.
    """
    if trained_only:
        return {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = {name: tensor for name, tensor in own_tensors(module).items() if name not in names}
    return {name: parameter.detach() for name, parameter in module.named_parameters()} | buffers


def write_pieces(ranks: Ranks, folder: Path, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write parts of a checkpoint to a new folder and flush them to disk; called on every rank.

    Args:
        ranks: The ranks.
        folder: The folder, visible to all ranks.
        parts: Name of a part -> its tensors. Each rank writes its piece of sharded tensors; others are equal on all
            ranks and written once.

    Raises:
        Exception: Error on this or another rank.
    """

    def begin() -> None:
        for left_over in folder.parent.glob(".*.tmp"):
            shutil.rmtree(left_over)
        folder.mkdir(parents=True)

    ranks.on_first(begin)
    try:
        for name, tensors in parts.items():
            save(dict(tensors), storage_writer=HuggingFaceStorageWriter(str(folder / name), save_distributed=True))
    except CheckpointException as error:  # is not an Exception
        ranks.on_first(lambda: shutil.rmtree(folder, ignore_errors=True))
        raise first_failure(error) from None


def require_seen(ranks: Ranks, folder: Path) -> None:
    """Raise unless every rank sees a folder of rank 0.

    Raises:
        CheckpointError: A rank does not see it.
    """
    if not all(ranks.gathered(folder.is_dir())):
        raise CheckpointError(
            f"all ranks write their pieces of a checkpoint to {folder}, and not all of them see it: put the run folder "
            "on storage that all machines share, or pass --update.sharding none."
        )


@torch.no_grad()
def read_divided(folder: Path, part: str, targets: Mapping[str, Tensor]) -> None:
    """Fill tensors, each rank its own piece, from a part written by any number of ranks.

    Args:
        folder: The checkpoint.
        part: The part.
        targets: Tensors to fill.

    Raises:
        CheckpointError: The part has other tensors.
    """
    shapes = stored_shapes(folder, part)
    if {name: tuple(tensor.shape) for name, tensor in targets.items()} != shapes:
        raise CheckpointError(f"{folder / part} belongs to another model: resume with the settings of that run.")
    read_into(folder, part, targets)
