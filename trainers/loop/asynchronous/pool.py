"""Groups of episodes between the player and the learner."""

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
    """A group whose episodes are all over.

    Args:
        number: Number of the group in the run.
        version: Version of the weights that it began with.
        episodes: Its episodes in order.
    """

    number: int
    version: int
    episodes: Sequence[Trajectory]

    @property
    def oldest(self) -> int:
        """Version of the oldest weights that wrote one of its turns."""
        written = [t.policy_version for each in self.episodes for t in each.turns if t.policy_version >= 0]
        return min(written, default=self.version)


class Pool:
    """Takes finished groups from the player, and gives the learner batches that are fresh enough.

    With ``wait``, a batch has all groups that would be too old for the next one, so that the learner waits for
    stragglers and nothing is dropped: at most ``batch`` untrained groups can be that old, because of the gate. With
    ``drop``, it takes what finished first, and drops groups that have become too old.

    Args:
        gate: Counts versions and groups; its condition guards the pool as well.
        on_stale: What becomes of groups that get too old.
    """

    def __init__(self, gate: Gate, on_stale: OnStale = "wait") -> None:
        self.gate = gate
        self.on_stale = on_stale
        self.playing: dict[int, int] = {}
        """Groups that are being played -> the version that they began with."""
        self.finished: dict[int, Group] = {}
        """Groups that wait for the learner, in the order in which they finished."""
        self.dropped: list[Group] = []
        """Groups dropped since the last look."""
        self.waited = 0.0
        """Seconds that the learner has waited."""
        self._error: BaseException | None = None

    def begin(self, number: int, version: int) -> None:
        """Note that a group is being played."""
        with self.gate.changed:
            self.playing[number] = version

    def finish(self, number: int, episodes: Sequence[Trajectory]) -> None:
        """Hand over a group whose episodes are over."""
        with self.gate.changed:
            version = self.playing.pop(number)
            self.finished[number] = Group(number, version, episodes)
            self.gate.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Let the learner raise an error of the player."""
        with self.gate.changed:
            self._error = error
            self.gate.changed.notify_all()

    def take(self, count: int) -> list[Group]:
        """Wait for a batch of so many groups, and return it in the order of their numbers.

        Raises:
            Exception: What the player raised.
        """
        began = time.perf_counter()
        with self.gate.changed:
            self.gate.changed.wait_for(lambda: self._error is not None or self._is_ready(count))
            self.waited += time.perf_counter() - began
            if self._error is not None:
                raise self._error
            first = sorted(self.finished.values(), key=lambda group: not self._is_due(group.version))
            chosen = sorted(first[:count], key=lambda group: group.number)
            for group in chosen:
                del self.finished[group.number]
            return chosen

    def _is_ready(self, count: int) -> bool:
        if self.on_stale == "drop":
            self._drop_stale()
        elif any(map(self._is_due, self.playing.values())):
            return False
        return len(self.finished) >= count

    def _is_due(self, version: int) -> bool:
        """Return whether a group of that version would be too old for the next batch."""
        return self.on_stale == "wait" and self.gate.version - version >= self.gate.staleness

    def _drop_stale(self) -> None:
        for group in list(self.finished.values()):
            if not self.gate.admits(group.oldest):
                self.dropped.append(self.finished.pop(group.number))
