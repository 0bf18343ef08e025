"""Runs the slots in threads: for environments that wait more than they compute."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from turngym.envs.vector.backends.base import VECTOR_BACKENDS, BackendOptions
from turngym.envs.vector.backends.lanes.lanes import Answer, Broken, Gate, Lane, leave_all
from turngym.envs.vector.backends.workers import Order, Worker, WorkersBackend
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Slot
from turngym.errors import ConfigError

_CLOSE_SECONDS = 5.0
_CLOSE_BUSY_SECONDS = 0.5


class LaneWorker(Worker):
    """One slot and its lane, which may be abandoned.

    Args:
        slot: Index of the slot.
        make_lane: Makes a fresh lane, with a fresh environment.
    """

    lane: Lane

    def __init__(self, slot: int, make_lane: Callable[[], Lane]) -> None:
        self._make_lane = make_lane
        super().__init__([slot])

    def launch(self) -> None:
        """Start a fresh lane."""
        self.lane = self._make_lane()


@VECTOR_BACKENDS.register("thread")
class ThreadBackend(WorkersBackend[LaneWorker]):
    """Runs every slot in a separate thread; survives an exception and a hang.

    An environment stays in the thread that made it. Its operations overlap with those of all other slots as far as
    they release Python's global lock, as waiting does. One that exceeds its limit is abandoned together with its thread
    and its environment, and the slot continues with fresh ones; such threads do not keep the program from ending.
    ``num_workers`` limits how many operations run at once; the default is no limit.
    """

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        if options.memory_limit_mib is not None:
            raise ConfigError('memory_limit_mib would limit this very process. Pass backend="process".')
        self._post: SimpleQueue[Answer] = SimpleQueue()
        self._afterwards: list[Callable[[], None]] = []
        self._finalizer = weakref.finalize(self, _end_all, self._workers, self._afterwards, os.getpid())
        gate = Gate(options.num_workers)
        self._workers += [LaneWorker(slot, self._lane_maker(slot, maker, gate)) for slot, maker in enumerate(makers)]

    def _lane_maker(self, index: int, maker: Maker, gate: Gate) -> Callable[[], Lane]:
        """Return what makes the lanes of a slot; it must not keep this backend alive."""
        post = self._post
        return lambda: Lane(index, Slot(maker), post, gate)

    def shut_down(self) -> None:
        """Close the environments; those that hang are abandoned."""
        self.abandoned += self._finalizer() or 0

    def _transmit(self, worker: LaneWorker, jobs: list[Order]) -> None:
        for job in jobs:
            worker.lane.put(job)

    def _read(self, worker: LaneWorker) -> None:
        self._wait(0.0)

    def _wait(self, seconds: float) -> None:
        try:
            answer = self._post.get(timeout=seconds)
            while True:
                self._take(answer)
                answer = self._post.get_nowait()
        except Empty:
            return

    def _take(self, answer: Answer) -> None:
        """Take one answer, unless it comes too late."""
        worker = self._workers[answer.lane.index]
        if answer.lane is not worker.lane:
            return
        self.latencies.took(answer.kind, answer.seconds)
        if isinstance(answer.content, Broken):
            answer.lane.leave()
            self._replace(worker, worker.flight[answer.serial], answer.content.fault)
        else:
            self._accept(worker, ([(answer.serial, answer.content, answer.start)], {}))
        self._go_on(worker)

    def _look_after(self, worker: LaneWorker, now: float) -> None:
        """Abandon a lane whose operation takes too long."""
        (job,) = worker.flight.values()
        limit = self._limit_of(job, worker.lane.is_repeating)
        if limit is None or now - worker.lane.began <= limit:
            return
        if not self._part_with(worker):
            return
        self._replace(worker, job, self._timeout(job, limit, worker.lane.is_repeating))
        self._send(worker)

    def _part_with(self, worker: LaneWorker) -> bool:
        """Abandon the lane of a worker; False if it is not to blame."""
        self.abandoned += 1
        worker.lane.leave()
        return True


def _end_all(workers: list[LaneWorker], afterwards: list[Callable[[], None]], pid: int) -> int:
    """End every lane and what they shared, and return how many hang."""
    if os.getpid() != pid:
        return 0  # a forked copy of this process: the threads belong to the original
    num_hanging = leave_all([worker.lane for worker in workers], _CLOSE_SECONDS, _CLOSE_BUSY_SECONDS)
    for each in afterwards:
        each()
    return num_hanging
