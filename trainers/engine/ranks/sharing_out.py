"""Distribution of work over ranks: by cost, the most expensive pieces first, each to the rank with the least."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

SQUARES_FROM = 4096
"""Tokens from which on a sequence costs more by its attention than by everything else."""


def sequence_cost(tokens: int) -> float:
    """Return what a sequence costs in a forward and a backward pass, in tokens.

    >>> sequence_cost(4096)
    8192.0
    """
    return tokens + tokens * tokens / SQUARES_FROM


def shared_out(costs: Sequence[float], size: int) -> list[list[int]]:
    """Return the pieces of each rank, by their positions, which rise within a rank.

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
