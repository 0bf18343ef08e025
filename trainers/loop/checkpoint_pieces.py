"""Parts of a checkpoint that all ranks write at once, each its own pieces, through torch.distributed.checkpoint.

Its usual storage keeps an index in a pickled file. The one for safetensors says in each file's header where its pieces
belong, so nothing has to be unpickled, and any number of ranks can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_saver import save

from turngym.agents.models.checkpoint_tensors import first_failure


def write_pieces(folder: Path, part: str, tensors: Mapping[str, Tensor]) -> None:
    """Write one part of a checkpoint and flush it to disk; every rank calls it.

    Args:
        folder: The checkpoint.
        part: Name of the part.
        tensors: Of distributed tensors each rank writes its own piece; others are equal on all ranks and written once.

    Raises:
        Exception: What failed on this or another rank.
    """
    try:
        save(dict(tensors), storage_writer=HuggingFaceStorageWriter(str(folder / part), save_distributed=True))
    except CheckpointException as error:  # is no Exception
        raise first_failure(error) from None
