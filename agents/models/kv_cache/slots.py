"""Bookkeeping of the cache: tokens and last use of each row, and eviction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class Slots:
    """The tokens behind the keys in memory, row by row.

    ``last_use`` counts requests: a row that other requests have passed by twice over belongs to an episode that ended.
    """

    def __init__(self) -> None:
        self.ids = np.zeros((0, 0), dtype=np.int64)
        self.lengths = np.zeros(0, dtype=np.int64)
        self.last_use = np.zeros(0, dtype=np.int64)
        self.is_running = np.zeros(0, dtype=bool)
        self.clock = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.lengths)

    @property
    def columns(self) -> int:
        """Tokens that a row can hold."""
        return int(self.ids.shape[1])

    def tokens(self, row: int) -> tuple[int, ...]:
        """Return what a row holds."""
        return tuple(self.ids[row, : self.lengths[row]].tolist())

    def common(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of the first tokens of a prompt each row holds."""
        longest = min(len(tokens), int(self.lengths.max(initial=0)))
        if not longest:
            return np.zeros(self.rows, dtype=np.int64)
        found = np.zeros(self.rows, dtype=np.int64)
        candidates = np.flatnonzero((self.lengths > 0) & (self.ids[:, 0] == tokens[0]))
        differs = self.ids[candidates, :longest] != tokens[:longest]
        first = np.where(differs.any(axis=1), differs.argmax(axis=1), longest)
        found[candidates] = np.minimum(first, self.lengths[candidates])
        return found

    def append(self, row: int, tokens: Sequence[int] | NDArray[np.int64]) -> None:
        """Note that keys of more tokens were written."""
        start = int(self.lengths[row])
        self.ids[row, start : start + len(tokens)] = tokens
        self.lengths[row] = start + len(tokens)

    def take(self, row: int, keep: int) -> None:
        """Let a request run in a row, whose first tokens it keeps."""
        self.clock += 1
        self.lengths[row], self.last_use[row], self.is_running[row] = keep, self.clock, True

    def free(self, row: int) -> None:
        """End the request that runs in a row; what the row holds stays."""
        self.is_running[row] = False

    def empty(self) -> None:
        """Forget what all rows hold."""
        self.lengths[:] = 0

    def copy(self, source: int, target: int, width: int) -> None:
        """Copy the first tokens of a row to another one."""
        self.ids[target, :width] = self.ids[source, :width]
        self.lengths[target] = width

    def swap(self, one: int, other: int) -> None:
        """Exchange two rows."""
        for array in (self.ids, self.lengths, self.last_use, self.is_running):
            array[[one, other]] = array[[other, one]]

    def resize(self, rows: int, columns: int, keep: Sequence[int]) -> None:
        """Change the size; the rows kept become the first ones."""
        old, order = self, list(keep)
        width = min(columns, self.columns)
        ids = np.zeros((rows, columns), dtype=np.int64)
        ids[: len(order), :width] = old.ids[order, :width]
        self.ids = ids
        for name in ("lengths", "last_use", "is_running"):
            array = getattr(old, name)
            setattr(self, name, np.concatenate([array[order], np.zeros(rows - len(order), dtype=array.dtype)]))

    def idle(self, but: Iterable[int] = ()) -> list[int]:
        """Return the rows that hold something and run nothing, the one used longest ago first."""
        spared = set(but)
        found = [row for row in np.flatnonzero(~self.is_running & (self.lengths > 0)).tolist() if row not in spared]
        return sorted(found, key=lambda row: int(self.last_use[row]))

    def vacant(self, but: Iterable[int] = ()) -> list[int]:
        """Return the rows that hold nothing and run nothing."""
        spared = set(but)
        return [row for row in np.flatnonzero(~self.is_running & (self.lengths == 0)).tolist() if row not in spared]

    def is_stale(self, row: int) -> bool:
        """True if so many requests have passed since a row was used that its episode must have ended."""
        return bool(self.clock - self.last_use[row] > 2 * self.rows)
