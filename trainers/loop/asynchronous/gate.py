"""Staleness limiter: bounds how far rollouts run ahead of training."""

from __future__ import annotations

import threading


class Gate:
    """Staleness limiter of groups, between player and learner.

    The version is the number of completed iterations. Every iteration trains on ``batch`` groups, so a group that
    starts while fewer than ``(staleness + version + 1) * batch`` have started is trained on at an age of at most
    ``staleness`` versions.

    Args:
        batch: Groups per iteration.
        staleness: Maximum versions between the weights that started a group and those trained on it.
        iterations: Iterations of the run, for which groups are started; 0 for no end.
        version: Current version of the weights.
        begun: Number of groups started so far; by default those of earlier iterations.

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
        """Number of groups rejected as too stale."""
        self.extra = 0
        """Number of groups that iterations used beyond their batch."""
        self.is_closed = False
        self.changed = threading.Condition()
        """Guards all changes, and is notified after them."""

    @property
    def limit(self) -> int:
        """Maximum number of started groups."""
        ahead = self.staleness + self.version + 1
        return (min(ahead, self.iterations) if self.iterations else ahead) * self.batch + self.extra

    def begin(self, timeout: float | None = 0.0) -> int | None:
        """Start one more group if allowed.

        Args:
            timeout: Maximum waiting time in seconds; None for no limit.

        Returns:
            The current version; None if the group may not start, or the gate is closed.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.is_closed or self.begun < self.limit, timeout)
            if self.is_closed or self.begun >= self.limit:
                return None
            self.begun += 1
            return self.version

    def admits(self, oldest: int) -> bool:
        """Return True if a group is fresh enough to train on; otherwise another may start in its place.

        Args:
            oldest: Oldest version of the weights of its turns.
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
        """Let the current iteration train on additional groups, for methods that resample."""
        with self.changed:
            self.extra += groups
            self.changed.notify_all()

    def close(self) -> None:
        """Close the gate: no further groups start; wakes all waiting threads."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
