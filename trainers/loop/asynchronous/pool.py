"""Finished groups between player and learner."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from turngym.agents.trajectory import Trajectory
from turngym.trainers.loop.asynchronous.gate import Gate

OnStale: TypeAlias = Literal["wait", "drop"]


@dataclass(frozen=True)
class Group:
    """A finished group.

    Args:
        number: Number of the group in the run.
        version: Version of the weights that it started with.
        episodes: Its episodes in order.
    """

    number: int
    version: int
    episodes: Sequence[Trajectory]

    @property
    def oldest(self) -> int:
        """Oldest version of the weights of its turns."""
        written = [t.policy_version for each in self.episodes for t in each.turns if t.policy_version >= 0]
        return min(written, default=self.version)


class Pool:
    """Queue of finished groups, from which the learner takes batches that are fresh enough.

    With ``wait``, a batch contains all groups that would otherwise become too stale, so the learner waits for
    stragglers and nothing is dropped; because of the gate, these are at most a batch. With ``drop``, a batch contains
    the first finished groups, and groups that have become too stale are dropped.

    Args:
        gate: Staleness limiter; its condition also guards the pool.
        on_stale: Handling of groups that exceed the staleness bound.
    """

    def __init__(self, gate: Gate, on_stale: OnStale = "wait") -> None:
        self.gate = gate
        self.on_stale = on_stale
        self.playing: dict[int, int] = {}
        """Group in progress -> version at its start."""
        self.finished: dict[int, Group] = {}
        """Groups waiting for the learner, in the order in which they finished."""
        self.dropped: list[Group] = []
        """Groups dropped since the last call."""
        self.waited = 0.0
        """Waiting time of the learner in seconds."""
        self._error: BaseException | None = None

    def begin(self, number: int, timeout: float | None = 0.0) -> int | None:
        """Start a group, see :meth:`Gate.begin`."""
        with self.gate.changed:
            version = self.gate.begin(timeout)
            if version is not None:
                self.playing[number] = version
            return version

    def go_on(self, number: int, version: int) -> None:
        """Add a group in progress that the gate has already counted."""
        with self.gate.changed:
            self.playing[number] = version

    def finish(self, number: int, episodes: Sequence[Trajectory]) -> None:
        """Add a finished group."""
        with self.gate.changed:
            version = self.playing.pop(number)
            self.finished[number] = Group(number, version, episodes)
            self.gate.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Pass an error of the player to the learner."""
        with self.gate.changed:
            self._error = error
            self.gate.changed.notify_all()

    def take(self, count: int) -> list[Group]:
        """Wait for a batch of groups, and return it ordered by number.

        Raises:
            Exception: Exception of the player.
        """
        began = time.perf_counter()
        with self.gate.changed:
            self.gate.changed.wait_for(lambda: self._error is not None or self._is_ready(count))
            self.waited += time.perf_counter() - began
            if self._error is not None:
                raise self._error
            chosen = sorted(self._chosen(count), key=lambda group: group.number)
            for group in chosen:
                del self.finished[group.number]
            return chosen

    def _is_ready(self, count: int) -> bool:
        if self.on_stale == "drop":
            self._drop_stale()
        done = [group.version for group in self.finished.values()]
        return len(done) >= count and all(
            sum(own <= version for own in done) >= needed for version, needed in self._needed()
        )

    def _chosen(self, count: int) -> list[Group]:
        """Return the groups of the next batch: old ones as needed, then the first finished ones."""
        rest, chosen = list(self.finished.values()), list[Group]()
        for version, needed in [*self._needed(), (self.gate.version, count)]:
            old = [group for group in rest if group.version <= version][: max(needed - len(chosen), 0)]
            chosen += old
            rest = [group for group in rest if not any(group is other for other in old)]
        return chosen[:count]

    def _needed(self) -> list[tuple[int, int]]:
        """Return versions, oldest first, with the minimum number of groups up to that version in the next batch.

        Groups of a version can be used in a limited number of further batches; those that do not fit into the later
        ones must be in the next one.
        """
        if self.on_stale == "drop":
            return []
        versions = [*self.playing.values(), *(group.version for group in self.finished.values())]
        found = []
        for later in range(self.gate.staleness + 1):
            version = self.gate.version - self.gate.staleness + later
            found.append((version, sum(own <= version for own in versions) - later * self.gate.batch))
        return found

    def _drop_stale(self) -> None:
        for group in list(self.finished.values()):
            if not self.gate.admits(group.oldest):
                self.dropped.append(self.finished.pop(group.number))
