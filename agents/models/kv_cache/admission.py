"""Rows for new requests: the one that holds a prompt's beginning, a free one, or the one used longest ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turngym.agents.models.kv_cache.requests import Running
from turngym.agents.models.kv_cache.store import Store
from turngym.errors import ConfigError

_SLACK = 64
"""Columns made at once for tokens still to be sampled."""
_MIN_SHARED = 16
"""Shorter common beginnings are not worth a second pass."""


@dataclass
class Admitted:
    """A request that got a row.

    Args:
        request: The request.
        leader: A request of the same batch whose beginning it takes over once that one is prefilled.
        shared: Number of shared tokens.
    """

    request: Running
    leader: Running | None = None
    shared: int = 0


class Admission:
    """Finds rows for requests, within the budget of a store.

    Args:
        store: The rows.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def admit(self, waiting: deque[Running], most: int, new_tokens: int) -> list[Admitted]:
        """Give rows to the first waiting requests, at most so many, and remove them from the queue.

        Args:
            waiting: The queue.
            most: Limit of the batch.
            new_tokens: Maximum completion length in tokens.

        Raises:
            ConfigError: The budget is too small for a single request.
        """
        count, columns = self._fitting([request.length for request in list(waiting)[:most]], new_tokens)
        if not count:
            return []
        store = self.store
        rows = len(store.running) + count
        if columns != store.memory.columns:
            self._set_columns(self._with_slack(columns, max(rows, store.memory.rows)), rows)
        elif rows > store.memory.rows:
            self._add_rows(rows - store.memory.rows)
        return self._place([waiting.popleft() for _ in range(count)])

    def _fitting(self, lengths: Sequence[int], new_tokens: int) -> tuple[int, int]:
        """Return how many requests fit, and the columns that they need; those of now if all fit into these."""
        store, best = self.store, (0, 0)
        for columns in (store.memory.columns, store.longest() + 1):
            count = 0
            for length in lengths:
                wanted = max(columns, length + min(new_tokens, _SLACK))
                needed = max(columns, length + 1)
                rows = len(store.running) + count + 1
                columns_now = wanted if rows <= store.most_rows(wanted) else needed
                if rows > store.most_rows(columns_now):
                    break
                count, columns = count + 1, columns_now
            best = max(best, (count, columns), key=lambda found: found[0])
            if count == len(lengths):
                break
        if lengths and not best[0] and not store.running:
            raise ConfigError(
                f"a sequence of {lengths[0] + 1} tokens does not fit into the key-value cache, which holds "
                f"{store.budget}: raise --rollout.cache-tokens (0 is automatic), or lower "
                "--rollout.prompt.max-prompt-tokens."
            )
        return best

    def grow(self) -> list[Running]:
        """Make more columns for the tokens to come; returns requests that had to give way, to be queued again."""
        store = self.store
        moved = []
        while len(store.running) > store.most_rows(needed := store.longest() + 1):
            row = max(store.running, key=lambda each: int(store.slots.last_use[each]))
            moved.append(store.running[row])
            store.free(row)
        if not store.running:
            raise ConfigError(
                f"a sequence of {needed} tokens does not fit into the key-value cache, which holds {store.budget}: "
                "raise --rollout.cache-tokens (0 is automatic), or lower --rollout.max-new-tokens."
            )
        self._set_columns(self._with_slack(needed, len(store.running)), len(store.running))
        return moved

    def _with_slack(self, columns: int, rows: int) -> int:
        """Return more columns than are needed now, if so many rows stay within the budget, so that growth is rare."""
        more = max(columns + _SLACK, columns * 3 // 2)
        return more if rows <= self.store.most_rows(more) else columns

    def _set_columns(self, columns: int, rows: int) -> None:
        """Change the columns, with at least so many rows; what no longer fits is evicted, oldest first."""
        store = self.store
        allowed = store.most_rows(columns)
        idle = [row for row in store.slots.idle()[::-1] if store.slots.lengths[row] <= columns]
        kept = [*sorted(store.running), *idle][:allowed]
        store.resize(min(allowed, max(store.memory.rows, rows)), columns, kept)

    def _add_rows(self, missing: int) -> None:
        store = self.store
        rows = min(store.memory.rows + missing, store.most_rows(store.memory.columns))
        store.resize(rows, store.memory.columns, range(store.memory.rows))

    def _place(self, requests: Sequence[Running]) -> list[Admitted]:
        """Assign rows: first to requests that continue in one, then to the others, which may share prefixes."""
        admitted, others = [], []
        known = [
            (self.store.slots.common(tokens), tokens, request) for request in requests for tokens in [request.tokens()]
        ]
        for common, tokens, request in sorted(known, key=lambda each: -int(each[0].max(initial=0))):
            row = self._own_row(common)
            if row is None:
                others.append((tokens, request))
            else:
                self.store.take(row, min(int(common[row]), len(tokens) - 1), request)
                admitted.append(Admitted(request))
        return admitted + self._place_beginners(others)

    def _place_beginners(self, requests: Sequence[tuple[NDArray[np.int64], Running]]) -> list[Admitted]:
        """Give free rows; one whose beginning an earlier one of these is about to compute follows that one."""
        admitted: list[Admitted] = []
        leader: tuple[NDArray[np.int64], Running] | None = None
        for tokens, request in sorted(requests, key=lambda each: each[0].tolist()):
            best = self._best(tokens)
            shared = 0 if leader is None else _common(leader[0], tokens)
            is_equal = leader is not None and shared == len(tokens) == len(leader[0])
            if leader is not None and (is_equal or shared >= best[1] + _MIN_SHARED):
                self.store.take(self._free_row(), 0, request)
                admitted.append(Admitted(request, leader[1], shared))
            else:
                self._fork(request, tokens, best)
                admitted.append(Admitted(request))
                leader = tokens, request
        return admitted

    def _fork(self, request: Running, tokens: NDArray[np.int64], best: tuple[int, int]) -> None:
        """Let a request start in a free row, with a copy of the longest beginning that another row holds."""
        store, (source, keep) = self.store, best
        row = self._free_row(but=source)
        if keep < _MIN_SHARED:
            keep = 0
        elif row != source:
            store.copy(source, [row], keep)
            store.counts.forks += 1
        store.take(row, min(keep, len(tokens) - 1), request)

    def _best(self, tokens: NDArray[np.int64]) -> tuple[int, int]:
        """Return the row that holds most of a prompt's beginning, and how much."""
        common = self.store.slots.common(tokens)
        if not len(common):
            return -1, 0
        row = int(common.argmax())
        return row, int(common[row])

    def _own_row(self, common: NDArray[np.int64]) -> int | None:
        """Return the idle row that a prompt continues in: at least half of what it holds is the prompt's beginning."""
        slots = self.store.slots
        longest = int(common.max(initial=0))
        if not longest:
            return None
        rows = np.flatnonzero((common == longest) & ~slots.is_running & (2 * common >= slots.lengths))
        return int(rows[slots.last_use[rows].argmax()]) if len(rows) else None

    def _free_row(self, but: int = -1) -> int:
        """Pick a cache row: an empty one, a stale one, a new one, else the least recently used."""
        store = self.store
        vacant = store.slots.vacant()
        if vacant:
            return vacant[0]
        idle = store.slots.idle(but=[but])
        is_stale = bool(idle) and store.slots.is_stale(idle[0])
        if not is_stale and store.memory.rows < store.most_rows(store.memory.columns):
            self._add_rows(max(1, store.memory.rows // 4))
            return store.slots.vacant()[0]
        if not idle:
            return but  # the only row left: it is cut instead of copied
        store.slots.lengths[idle[0]] = 0
        store.counts.evictions += not is_stale
        return idle[0]


def _common(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
