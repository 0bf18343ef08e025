"""The gate between the player and the learner: how far rollouts may run ahead of the weights."""

from __future__ import annotations

import threading


class Gate:
    """Lets groups of episodes start while few of them can become stale.

    A version counts the iterations that have been trained. Every iteration trains on ``batch`` groups, so a group that
    starts while fewer than ``(staleness + version + 1) * batch`` have started can be trained on before it is older than
    ``staleness`` versions.

    Args:
        batch: Groups of an iteration.
        staleness: Maximum versions between the weights that started a group and those that it trains.
        iterations: Iterations of the run, beyond which nothing starts; 0 for no end.
        version: Version of the weights now.
        begun: Groups that have started so far; those of earlier iterations unless given.

    >>> gate = Gate(batch=2, staleness=0)
    >>> gate.begin(), gate.begin(), gate.begin()
    (0, 0, None)
    >>> gate.updated()
    >>> gate.begin()
    1
    """

    def __init__(
        self, batch: int, staleness: int, iterations: int = 0, version: int = 0, begun: int | None = None
    ) -> None:
        self.batch = batch
        self.staleness = staleness
        self.iterations = iterations
        self.version = version
        self.begun = version * batch if begun is None else begun
        self.dropped = 0
        """Groups that were refused because they were too old."""
        self.extra = 0
        """Groups that iterations took beyond their batch."""
        self.is_closed = False
        self.changed = threading.Condition()
        """Held while anything here changes; notified afterwards."""

    @property
    def limit(self) -> int:
        """Groups that may have started by now."""
        ahead = self.staleness + self.version + 1
        return (min(ahead, self.iterations) if self.iterations else ahead) * self.batch + self.extra

    def begin(self, timeout: float | None = 0.0) -> int | None:
        """Let one more group start.

        Args:
            timeout: Seconds to wait until it may; None waits for ever.

        Returns:
            The version now; None if it may not begin, or the gate is closed.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.is_closed or self.begun < self.limit, timeout)
            if self.is_closed or self.begun >= self.limit:
                return None
            self.begun += 1
            return self.version

    def admits(self, oldest: int) -> bool:
        """Return whether a group may be trained on now; if not, another one may start in its place.

        Args:
            oldest: Version of the oldest weights that wrote one of its turns.
        """
        with self.changed:
            is_stale = self.version - oldest > self.staleness
            if is_stale:
                self.begun -= 1
                self.dropped += 1
                self.changed.notify_all()
            return not is_stale

    def updated(self) -> None:
        """Count a new version."""
        with self.changed:
            self.version += 1
            self.changed.notify_all()

    def add(self, groups: int) -> None:
        """Let the iteration of now train on more groups than a batch, as methods that resample do."""
        with self.changed:
            self.extra += groups
            self.changed.notify_all()

    def close(self) -> None:
        """Let nothing start any more, and wake all waiting threads."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
