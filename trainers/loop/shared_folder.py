"""A folder of the first rank, such as that of a model, on ranks that may not see its files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from turngym.system.scratch import scratch_root
from turngym.trainers.engine.ranks import Ranks

_PIECE = 2**26


@contextmanager
def folder_of_first(ranks: Ranks, path: Path) -> Iterator[Path]:
    """Return a folder on every rank: the first one's own, and copies of it that are deleted afterwards.

    Args:
        ranks: The ranks.
        path: The folder, which only the first rank reads.
    """
    if ranks.size == 1:
        yield path
        return
    names = ranks.on_first(lambda: sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()))
    with tempfile.TemporaryDirectory(prefix="rank-", dir=scratch_root()) as copies:
        target = path if ranks.is_first else Path(copies)
        for name in names:
            _send(ranks, target / name)
        yield target


def _send(ranks: Ranks, file: Path) -> None:
    """Send a file in pieces; every rank but the first writes it."""
    content = np.memmap(file, dtype=np.uint8, mode="c") if ranks.is_first and file.stat().st_size else None
    size = ranks.from_first(0 if content is None else len(content))
    if not ranks.is_first:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    for start in range(0, size, _PIECE):
        length = min(_PIECE, size - start)
        empty = torch.empty(length, dtype=torch.uint8)
        piece = empty if content is None else torch.from_numpy(np.array(content[start : start + length]))
        ranks.broadcast(piece)
        if not ranks.is_first:
            with file.open("ab") as opened:
                opened.write(piece.numpy().tobytes())
