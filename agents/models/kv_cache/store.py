"""The memory and the tokens behind it, changed together: sizes, copies, and the requests that run in rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turngym.agents.models.kv_cache.memory import Memory
from turngym.agents.models.kv_cache.requests import CacheCounts, Running
from turngym.agents.models.kv_cache.slots import Slots


class Store:
    """Rows of keys and values, the tokens that they belong to, and the requests that run in them.

    Args:
        num_layers: Layers of the network.
        budget: Capacity of the memory in tokens, rows times columns.
        is_packed: See :class:`~turngym.agents.models.kv_cache.memory.MemoryLayer`.
    """

    def __init__(self, num_layers: int, budget: int, is_packed: bool = False) -> None:
        self.memory = Memory(num_layers, is_packed)
        self.slots = Slots()
        self.budget = budget
        self.running: dict[int, Running] = {}
        self.counts = CacheCounts()

    def most_rows(self, columns: int) -> int:
        """Return how many rows of so many columns the budget allows."""
        return self.budget // (columns + 1)

    def drop(self) -> None:
        """Forget everything, but keep the memory."""
        self.running.clear()
        self.slots.empty()

    def release(self) -> None:
        """Forget everything, and give the memory back."""
        self.drop()
        self.memory.release()
        self.slots.resize(0, 0, [])

    def take(self, row: int, keep: int, request: Running) -> None:
        """Let a request run in a row, whose first tokens it keeps."""
        self.slots.take(row, keep)
        self.running[row] = request
        request.row = row

    def free(self, row: int) -> None:
        """End the request that runs in a row; what the row holds stays."""
        self.slots.free(row)
        self.running.pop(row).row = -1

    def copy(self, source: int, targets: Sequence[int], width: int) -> None:
        """Copy the first tokens of a row, and their keys, to other rows."""
        self.memory.copy(source, targets, width)
        for target in targets:
            self.slots.copy(source, target, width)

    def resize(self, rows: int, columns: int, kept: Sequence[int]) -> None:
        """Change the size.

        Args:
            rows: New number of rows.
            columns: New number of columns.
            kept: Rows that stay, all that run among them; they become the first ones. The others are evicted.
        """
        lengths = self.slots.lengths
        self.counts.evictions += int((lengths > 0).sum() - (lengths[list(kept)] > 0).sum())
        self.memory.resize(rows, columns, kept, int(lengths[list(kept)].max(initial=0)))
        self.slots.resize(rows, columns, kept)
        self.running = {kept.index(row): request for row, request in self.running.items()}
        for row, request in self.running.items():
            request.row = row

    def move_running_to_the_front(self) -> None:
        """Exchange rows so that those that run are the first ones."""
        count = len(self.running)
        behind = sorted(row for row in self.running if row >= count)
        free = [row for row in range(count) if row not in self.running]
        for source, target in zip(behind, free, strict=True):
            self.memory.swap(source, target, int(self.slots.lengths[[source, target]].max()))
            self.slots.swap(source, target)
            request = self.running.pop(source)
            self.running[target], request.row = request, target

    def longest(self) -> int:
        """Return the tokens of the longest sequence that runs."""
        rows = np.fromiter(self.running, dtype=np.int64)
        return int(self.slots.lengths[rows].max(initial=0)) if len(rows) else 0
