"""Base of the backends with workers: slot assignment, jobs in flight, fault attribution, replay."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from turngym.envs.vector.backends.base import Backend, BackendOptions, Failure
from turngym.envs.vector.backends.worker import IDLE
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import READ_ONLY, Journal, Op, failed_reset, fault_result
from turngym.errors import TurngymError

_LOOK_SECONDS = 0.1
_SILENT_DEATHS = 3


@dataclass(slots=True)
class Job:
    """One operation in flight.

    Args:
        serial: Number of the job, unique within the backend.
        slot: The slot it is for.
        op: The operation.
        faults: Faults so far.
        is_wanted: Whether the answer is still needed; False after an interrupt.
    """

    serial: int
    slot: int
    op: Op
    faults: tuple[str, ...] = ()
    is_wanted: bool = True


Order: TypeAlias = tuple[int, int, Journal | None, Op]
"""Job of a worker: its number, slot, operations to replay first, and the operation."""


class Worker(ABC):
    """One worker of the pool: it runs the jobs of its slots, and may be replaced.

    Args:
        slots: The slots, by index.
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = slots
        self.queue: deque[Job] = deque()
        self.flight: dict[int, Job] = {}
        self.is_cautious = False
        """Whether to send one job at a time, because it is unknown which of several broke the worker."""
        self.silent_deaths = 0
        """Number of consecutive ends of the worker without an answer."""
        self.start()

    def start(self) -> None:
        """Start afresh."""
        self.started = time.monotonic()
        self.launch()

    @abstractmethod
    def launch(self) -> None:
        """Start what runs the jobs; what ran them before has ended."""


AnyWorker = TypeVar("AnyWorker", bound=Worker)


class WorkersBackend(Backend, Generic[AnyWorker]):
    """Spreads the slots over workers, several to each, and replaces the workers that break.

    The slot that broke a worker faults. The worker's other slots are rebuilt from their journals and are unaffected.
    Every worker gets one message per step and answers with one, or with several where its environments are slow.
    """

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        self._journals = [Journal() for _ in makers]
        self._lost: set[int] = set()
        self._serial = 0
        limits = [options.step_timeout_seconds, options.reset_timeout_seconds]
        self._longest = None if None in limits else max(limit for limit in limits if limit is not None)
        self._limits = {"step": options.step_timeout_seconds, "reset": options.reset_timeout_seconds}
        self._look_seconds = min([_LOOK_SECONDS, *(limit / 20 for limit in limits if limit is not None)])
        self._looked = time.monotonic()
        self._workers: list[AnyWorker] = []
        self._helpers: dict[int, AnyWorker] = {}
        """Single-slot workers, for slots taken out of a worker that had to be killed."""

    def _worker_of(self, slot: int) -> AnyWorker:
        return self._helpers.get(slot) or self._workers[slot % len(self._workers)]

    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Queue the operations and send what can be sent."""
        self.require_open()
        touched = {}
        for slot, op in zip(slots, ops, strict=True):
            if slot in self._orphans:
                self._disown(slot)
            self._serial += 1
            self._prepare(slot, op)
            worker = self._worker_of(slot)
            touched[id(worker)] = worker
            worker.queue.append(Job(self._serial, slot, op))
        for worker in touched.values():
            if worker.flight:
                self._read(worker)
            self._send(worker)

    def _prepare(self, slot: int, op: Op) -> None:
        """Get ready for an operation on a slot."""

    def _disown(self, slot: int) -> None:
        """Discard the answer of an interrupted operation, even one still to come, because another operation follows."""
        self._orphans.discard(slot)
        self.done.pop(slot, None)
        worker = self._worker_of(slot)
        for job in (*worker.queue, *worker.flight.values()):
            if job.slot == slot:
                job.is_wanted = False

    def pump(self, timeout_seconds: float | None) -> None:
        """Read answers and check the workers until an answer has arrived or the timeout expires."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        before = len(self.done)
        while len(self.done) == before:
            look = self._look_seconds
            self._wait(look if deadline is None else min(look, max(0.0, deadline - time.monotonic())))
            now = time.monotonic()
            if now - self._looked > look:
                self._looked = now
                for worker in [*self._workers, *self._helpers.values()]:
                    if worker.flight:
                        self._look_after(worker, now)
            if deadline is not None and time.monotonic() >= deadline:
                return

    def adopt(self, slot: int, journal: Journal) -> None:
        """Rebuild a slot from the journal before its next operation."""
        self._journals[slot] = journal
        self._lost.add(slot)

    def beginning(self, slot: int) -> tuple[str, Any] | None:
        """Return how the running episode of a slot started."""
        return self._journals[slot].start

    # Implemented by each kind of worker.

    @abstractmethod
    def _transmit(self, worker: AnyWorker, jobs: list[Order]) -> None:
        """Send jobs, which are in flight already; :meth:`_replace` the worker if it is gone."""

    @abstractmethod
    def _read(self, worker: AnyWorker) -> None:
        """Take what the worker has answered, without waiting."""

    @abstractmethod
    def _wait(self, seconds: float) -> None:
        """Wait so long for answers and take those that come."""

    @abstractmethod
    def _look_after(self, worker: AnyWorker, now: float) -> None:
        """Replace a busy worker that hangs or has ended unnoticed."""

    # Jobs and answers.

    def _send(self, worker: AnyWorker) -> None:
        """Send what is queued, unless the worker is busy: so neither side ever waits for the other to read."""
        while worker.queue and not worker.flight:
            count = 1 if worker.is_cautious else len(worker.queue)
            batch = [worker.queue.popleft() for _ in range(count)]
            orders = [(job.serial, job.slot, self._journal_for(job), job.op) for job in batch]
            worker.flight = {job.serial: job for job in batch}
            self._transmit(worker, orders)

    def _journal_for(self, job: Job) -> Journal | None:
        """Return what must be repeated before the job, None if the worker knows the slot."""
        kind = job.op[0]
        if job.slot not in self._lost:
            return None
        self._lost.discard(job.slot)
        journal = self._journals[job.slot]
        if kind == "restore" or (kind == "reset" and job.op[1] is not None):
            journal = journal.heading()
        elif journal.start is None:
            journal = journal.heading()  # no episode to repeat, but what was set before the first one
        return None if journal.start is None and not journal.attributes else journal

    def _limit_of(self, job: Job, is_repeating: bool) -> float | None:
        """Return how long the part of a job may take that is under way; None for ever."""
        return self._longest if is_repeating else self._limits.get(job.op[0], self._longest)

    def _timeout(self, job: Job, limit_seconds: float, is_repeating: bool) -> str:
        """Return the fault of a job that took too long, which is counted with the limit."""
        self.latencies.took(job.op[0], limit_seconds)
        what = "repeating the episode" if is_repeating else job.op[0]
        return f"timeout: {what} took longer than {limit_seconds:g} s"

    def _accept(self, worker: AnyWorker, message: tuple[list[tuple[int, Any, Any]], dict[str, list[float]]]) -> None:
        """Take the answers of one message, and the durations that came with them."""
        answers, durations = message
        self.latencies.absorb(durations)
        for serial, content, start in answers:
            if serial == IDLE:  # the worker could not start at all
                raise self._give_up(content.error)
            job = worker.flight.pop(serial, None)
            if job is None:
                continue  # it was taken to another worker meanwhile
            if job.faults and not isinstance(content, Failure):
                content = (*content[:5], (*job.faults, *content[5]))
            self._finish(job, content, start)
        worker.silent_deaths = 0

    def _go_on(self, worker: AnyWorker) -> None:
        """Send the next jobs to a worker that has answered all; its caution ends when nothing is left."""
        if not worker.flight:
            worker.is_cautious = worker.is_cautious and bool(worker.queue)
            self._send(worker)

    def _finish(self, job: Job, content: Any, start: Any = None) -> None:
        """Store an answer, and write down what it means for the slot's journal."""
        if job.is_wanted:
            self.done[job.slot] = content
        journal, kind = self._journals[job.slot], job.op[0]
        if isinstance(content, Failure):
            return
        if kind == "step" and content[0] is not None:
            journal.log.append(job.op)
            journal.last = content[0]
        elif kind in ("reset", "step", "fail") and content[0] is None:
            self._journals[job.slot] = journal.heading()
        elif kind == "reset":
            journal.begin(start, job.op[2], content[0])
        elif kind == "restore":
            journal.begin(("snapshot", job.op[1]), None, content[0])
        elif kind == "set" or (kind == "call" and job.op[1] not in READ_ONLY):
            journal.log.append(job.op)

    # Replacing.

    def _replace(self, worker: AnyWorker, culprit: Job | None, fault: str) -> None:
        """Restart a worker that has ended; requeue its jobs, except the culprit."""
        self.workers_replaced += 1
        rest = [job for job in worker.flight.values() if job is not culprit]
        worker.flight = {}
        worker.queue.extendleft(reversed(rest))
        self._lost.update(worker.slots)
        if culprit is not None:
            self._blame(worker, culprit, fault)
        elif rest:
            worker.is_cautious = True
            worker.silent_deaths += 1
            if worker.silent_deaths > _SILENT_DEATHS:
                count = _SILENT_DEATHS + 1
                raise self._give_up(TurngymError(f"{count} workers in a row ended before they answered: {fault}"))
        self._renew(worker)

    def _renew(self, worker: AnyWorker) -> None:
        """Restart a worker that has ended."""
        worker.start()

    def _give_up(self, error: Exception) -> Exception:
        """Close everything, because the workers cannot do their work at all; return why."""
        self.close()
        return error

    def _blame(self, worker: AnyWorker, job: Job, fault: str) -> None:
        """Turn the end of a worker into the answer of the job that caused it; a reset is retried once."""
        kind = job.op[0]
        job.faults = (*job.faults, fault)
        if kind == "reset" and len(job.faults) == 1:
            worker.queue.appendleft(job)
        elif kind == "reset":
            self._finish(job, failed_reset(job.faults))
        elif kind == "step":
            self._finish(job, fault_result(fault))
        else:
            self._finish(
                job, Failure(TurngymError(f"{kind} {job.op[1:2]} of slot {job.slot} broke its worker: {fault}"))
            )


def shares(makers: Sequence[Maker], num_workers: int) -> list[dict[int, Maker]]:
    """Return the makers of each worker by slot: slot ``i`` is with worker ``i`` modulo their number.

    >>> [list(share) for share in shares([None] * 5, 2)]
    [[0, 2, 4], [1, 3]]
    """
    return [{slot: makers[slot] for slot in range(first, len(makers), num_workers)} for first in range(num_workers)]


def num_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
