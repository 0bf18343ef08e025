"""The thread that plays episodes during updates."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector.book import fault_kind
from turngym.trainers.loop.asynchronous.gate import Gate
from turngym.trainers.loop.asynchronous.history import History, planned_record
from turngym.trainers.loop.asynchronous.pool import Pool
from turngym.trainers.loop.asynchronous.weights import SamplerWeights
from turngym.trainers.loop.setup import iteration_specs
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.records.journal import Journal

RETRIES = 3
"""Maximum number of resumptions of an episode after its environment's worker died."""


@dataclass(frozen=True)
class Stage:
    """State shared by player and learner.

    Args:
        task: Task that plays.
        weights: The sampling weights.
        gate: Staleness limit of rollouts.
        pool: Finished groups for the learner.
        journal: The journal.
        history: Entries written before this process started.
    """

    task: EnvTask
    weights: SamplerWeights
    gate: Gate
    pool: Pool
    journal: Journal
    history: History


def lost_its_worker(trajectory: Trajectory) -> bool:
    """Return True if an episode faulted because its environment's process died."""
    return bool(trajectory.fault) and fault_kind(trajectory.fault) == "worker died"


class Player(ABC):
    """Plays groups of episodes in a separate thread until it is stopped.

    Args:
        stage: State shared with the learner.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.next_number = stage.history.next_number
        """Number of the next group."""
        self.restored = 0
        """Number of episodes resumed from the journal."""
        self.replayed = 0
        """Number of episodes resumed after their environment's worker died."""
        self._of_iteration: tuple[int, Sequence[EpisodeSpec]] = -1, ()
        self._thread: threading.Thread | None = None
        self._idle = 0.0
        self._idle_since: float | None = None

    @abstractmethod
    def play(self) -> None:
        """Play until the gate is closed."""

    def request(self, iteration: int, attempt: int) -> None:  # noqa: B027
        """Record that the learner waits for a batch; called from its thread."""

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics since the last call; called from the learner's thread."""
        return self.stage.task.metrics()

    def plan(self, wait: bool) -> Sequence[EpisodeSpec]:
        """Return the episodes of the next group; empty if none may start.

        Args:
            wait: Wait until a group may start, or the gate is closed.
        """
        number = self.next_number
        version = self.stage.pool.begin(number)
        if version is None and wait:
            with self.idle():
                version = self.stage.pool.begin(number, None)
        if version is None:
            return ()
        self.next_number += 1
        specs = self._of_group(number)
        self.stage.journal.append([planned_record(number, version, specs)])
        return specs

    def _of_group(self, number: int) -> list[EpisodeSpec]:
        """Return the episodes of a group, whose numbers are unique in the run."""
        config = self.stage.task.config
        iteration, place = divmod(number, self.stage.gate.batch)
        if self._of_iteration[0] != iteration:
            self._of_iteration = iteration, iteration_specs(config, iteration)
        size = config.rollout.group_size
        own = self._of_iteration[1][place * size : (place + 1) * size]
        return [replace(spec, episode=number * size + k, group=number) for k, spec in enumerate(own)]

    def start(self) -> None:
        """Start the thread; does nothing if started."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rollouts", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after pending calls of environments and sampler; unfinished episodes are in the journal."""
        self.stage.gate.close()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self.play()
        except BaseException as error:  # raised in the learner's thread
            self.stage.pool.fail(error)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Context whose duration counts as idle time."""
        self._idle_since = time.perf_counter()
        try:
            yield
        finally:
            self._idle += time.perf_counter() - self._idle_since
            self._idle_since = None

    def idle_seconds(self) -> float:
        """Return the idle time so far, in seconds."""
        since = self._idle_since
        return self._idle + (0.0 if since is None else time.perf_counter() - since)
