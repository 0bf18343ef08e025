"""Distribution over ranks: rank 0's folder, and work by its cost."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from turngym.system.scratch import scratch_root
from turngym.trainers.engine.ranks import Ranks

SQUARES_FROM = 4096
"""Length above which attention dominates the cost of a sequence, in tokens."""


def sequence_cost(tokens: int) -> float:
    """Return the cost of a sequence in a forward and a backward pass, in tokens.

    >>> sequence_cost(4096)
    8192.0
    """
    return tokens + tokens * tokens / SQUARES_FROM


def shared_out(costs: Sequence[float], size: int) -> list[list[int]]:
    """Return the indices of the pieces of each rank, ascending within a rank.

    Args:
        costs: Cost of each piece.
        size: Number of ranks; some may get nothing.

    >>> shared_out([1.0, 5.0, 1.0, 2.0, 2.0], 2)
    [[1, 2], [0, 3, 4]]
    >>> shared_out([3.0], 2)
    [[0], []]
    """
    loads = [(0.0, rank) for rank in range(size)]
    found: list[list[int]] = [[] for _ in range(size)]
    for piece in sorted(range(len(costs)), key=lambda piece: (-costs[piece], piece)):
        load, rank = heapq.heappop(loads)
        found[rank].append(piece)
        heapq.heappush(loads, (load + costs[piece], rank))
    return [sorted(pieces) for pieces in found]


_PIECE = 2**26


@contextmanager
def folder_of_first(ranks: Ranks, path: Path) -> Iterator[Path]:
    """Context with a folder on every rank: the original on rank 0, temporary copies on others.

    Args:
        ranks: The ranks.
        path: The folder, which only rank 0 reads.
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
    """Send a file in pieces; every rank except 0 writes it."""
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
