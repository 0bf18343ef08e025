"""Runs the slots in worker processes: whatever an environment does to its process, only its own episode ends."""

from __future__ import annotations

import os
import pickle
import selectors
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gymnasium.vector.utils import CloudpickleWrapper

from turngym.envs.vector.backend import VECTOR_BACKENDS, Backend, BackendOptions, Failure
from turngym.envs.vector.channel import Garbled, encode
from turngym.envs.vector.handle import Handle
from turngym.envs.vector.maker import Maker
from turngym.envs.vector.slot import READ_ONLY, Journal, Op, failed_reset, fault_result
from turngym.envs.vector.worker import IDLE
from turngym.errors import ConfigError, TurngymError

_LOOK_SECONDS = 0.1
_START_SECONDS = 120.0
_CLOSE_SECONDS = 5.0
_DEATH_SECONDS = 1.0
_SILENT_DEATHS = 3


@dataclass(slots=True)
class Job:
    """One operation on its way.

    Args:
        serial: Number of the job, unique within the backend.
        slot: The slot it is for.
        op: The operation.
        faults: What it has met so far.
        limit_seconds: How long it may take; None for ever.
    """

    serial: int
    slot: int
    op: Op
    faults: list[str] = field(default_factory=list)
    limit_seconds: float | None = None


class Worker:
    """One place of the pool: a process, which may be replaced, and the jobs of its slots.

    Args:
        makers: The makers of its slots, by index.
        memory_limit_mib: Memory the process may allocate, in MiB.
    """

    def __init__(self, makers: dict[int, Maker], memory_limit_mib: int | None) -> None:
        self.slots = list(makers)
        self.queue: deque[Job] = deque()
        self.flight: dict[int, Job] = {}
        self.is_cautious = False
        """Whether to send one job at a time, because nobody knows which of several broke the process."""
        self.silent_deaths = 0
        """How often in a row the process ended without having begun a job."""
        self._makers = pickle.dumps(CloudpickleWrapper(cast("Any", makers)))
        self._memory_limit_mib = memory_limit_mib
        self.start()

    def start(self) -> None:
        """Start a process."""
        self.handle = Handle(self._makers, self._memory_limit_mib)
        self.started = time.monotonic()
        self.is_new = True


@VECTOR_BACKENDS.register("process")
class ProcessBackend(Backend):
    """Runs slots in worker processes, several to each.

    A worker that dies, hangs or garbles its pipe is replaced. The slot that was being stepped faults. The worker's
    other slots are brought back from their journals and go on as if nothing had happened. Every worker gets one
    message per step and answers with one, or with several where its environments are slow.
    """

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        if os.name != "posix":
            raise ConfigError('the backend "process" needs a POSIX system. Pass backend="sync".')
        count = min(options.num_workers or _processors(), len(makers))
        self._journals = [Journal() for _ in makers]
        self._lost: set[int] = set()
        self._serial = 0
        self._looked = time.monotonic()
        self._selector = selectors.DefaultSelector()
        shares = [{slot: makers[slot] for slot in range(first, len(makers), count)} for first in range(count)]
        self._workers: list[Worker] = []
        self._finalizer = weakref.finalize(self, _end_all, self._workers, self._selector, os.getpid())
        for share in shares:
            self._workers.append(Worker(share, options.memory_limit_mib))
            self._watch(self._workers[-1])

    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Queue the operations and send what can be sent."""
        self.require_open()
        touched = {}
        for slot, op in zip(slots, ops, strict=True):
            self._serial += 1
            index = slot % len(self._workers)
            touched[index] = worker = self._workers[index]
            worker.queue.append(Job(self._serial, slot, op))
        for worker in touched.values():
            if worker.flight:
                self._read(worker)
            self._send(worker)

    def pump(self, timeout_seconds: float | None) -> None:
        """Read answers and look after the workers until an answer has come or the time is over."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        before = len(self.done)
        while len(self.done) == before:
            left = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic()))
            events = self._selector.select(left)
            for key, _ in events:
                self._read(key.data)
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._look_after_all()
                self._looked = time.monotonic()
            if deadline is not None and time.monotonic() >= deadline:
                return

    def shut_down(self) -> None:
        """End every worker."""
        self._finalizer()

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [worker.handle.pid for worker in self._workers]

    # Sending and reading.

    def _watch(self, worker: Worker) -> None:
        self._selector.register(worker.handle.channel, selectors.EVENT_READ, worker)

    def _send(self, worker: Worker) -> None:
        """Send what is queued, unless the worker is busy: so neither side ever waits for the other to read."""
        while worker.queue and not worker.flight:
            count = 1 if worker.is_cautious else len(worker.queue)
            batch = [worker.queue.popleft() for _ in range(count)]
            frame = encode(("run", [(job.serial, job.slot, self._journal_for(job), job.op) for job in batch]))
            worker.flight = {job.serial: job for job in batch}
            try:
                worker.handle.channel.send(frame)
            except OSError:
                self._bury(worker)

    def _journal_for(self, job: Job) -> Journal | None:
        """Return what must be repeated before the job, None if the worker knows the slot; set the job's limit."""
        limits = self.options
        kind = job.op[0]
        times = [limits.step_timeout_seconds, limits.reset_timeout_seconds]
        longest = None if None in times else max(limit for limit in times if limit is not None)
        job.limit_seconds = {"step": times[0], "reset": times[1]}.get(kind, longest)
        if job.slot not in self._lost:
            return None
        self._lost.discard(job.slot)
        journal = self._journals[job.slot]
        if kind == "restore" or (kind == "reset" and job.op[1] is not None):
            journal = journal.heading()
        if journal.start is None and not journal.attributes:
            return None
        if job.limit_seconds is not None:
            job.limit_seconds = None if longest is None else job.limit_seconds + longest * (1 + len(journal.log))
        return journal

    def _read(self, worker: Worker) -> None:
        try:
            messages = worker.handle.channel.poll()
        except EOFError:
            self._bury(worker)
        except Garbled:
            self._end(worker, 0.0)
            alone = next(iter(worker.flight.values())) if len(worker.flight) == 1 else None
            self._replace(worker, alone, "garbage on the pipe")
        else:
            for answers in messages:
                for serial, content, start in answers:
                    self._accept(worker, serial, content, start)
        if not worker.flight:
            worker.is_cautious = worker.is_cautious and bool(worker.queue)
            self._send(worker)

    def _accept(self, worker: Worker, serial: int, content: Any, start: Any) -> None:
        """Take one answer."""
        if serial == IDLE:  # the worker could not begin at all
            raise content.error
        job = worker.flight.pop(serial)
        worker.silent_deaths, worker.is_new = 0, False
        if job.faults and not isinstance(content, Failure):
            content = (*content[:5], (*job.faults, *content[5]))
        self._finish(job, content, start)

    def _finish(self, job: Job, content: Any, start: Any = None) -> None:
        """Store an answer, and write down what it means for the slot's journal."""
        self.done[job.slot] = content
        journal, kind = self._journals[job.slot], job.op[0]
        if isinstance(content, Failure):
            return
        if kind in ("reset", "step", "fail") and content[0] is None:
            self._journals[job.slot] = journal.heading()
        elif kind == "reset":
            journal.begin(start, job.op[2], content[0])
        elif kind == "restore":
            journal.begin(("snapshot", job.op[1]), None, content[0])
        elif kind == "step":
            journal.log.append(job.op)
            journal.last = content[0]
        elif kind == "set" or (kind == "call" and job.op[1] not in READ_ONLY):
            journal.log.append(job.op)

    # Looking after the workers.

    def _look_after_all(self) -> None:
        """Find the workers that hang, and those that died while something holds their pipe open."""
        now = time.monotonic()
        for worker in self._workers:
            if not worker.flight:
                continue
            serial, began = worker.handle.board.read()
            job = worker.flight.get(serial)
            if not worker.handle.is_running():
                self._bury(worker)
            elif job is not None and job.limit_seconds is not None and now - began > job.limit_seconds:
                self._end(worker, 0.0)
                self._replace(worker, job, f"timeout: {job.op[0]} took longer than {job.limit_seconds:g} s")
            elif worker.is_new and serial == IDLE and now - worker.started > _START_SECONDS:
                raise TurngymError(f"a worker process has not begun its work within {_START_SECONDS:g} s.")
            else:
                continue
            self._send(worker)

    def _bury(self, worker: Worker) -> None:
        """Replace a worker that died; the job that it was doing is the cause."""
        serial, _ = worker.handle.board.read()
        code = self._end(worker, _DEATH_SECONDS)
        self._replace(worker, worker.flight.get(serial), f"worker died (exit code {code})")

    def _end(self, worker: Worker, patience_seconds: float) -> int:
        self._selector.unregister(worker.handle.channel)
        return worker.handle.stop(patience_seconds)

    def _replace(self, worker: Worker, culprit: Job | None, fault: str) -> None:
        """Start a new process; queue again what was under way, without the culprit."""
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
                raise TurngymError(
                    f"{_SILENT_DEATHS + 1} worker processes in a row ended before they began their work."
                )
        worker.start()
        self._watch(worker)

    def _blame(self, worker: Worker, job: Job, fault: str) -> None:
        """Turn the end of a worker into the answer of the job that caused it; a reset gets a second try."""
        kind = job.op[0]
        job.faults.append(fault)
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


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_all(workers: list[Worker], selector: selectors.BaseSelector, pid: int) -> None:
    """End every worker: the idle ones may close their environments, the busy ones are killed."""
    if os.getpid() != pid:
        return  # a forked copy of this process: the workers belong to the original
    for worker in workers:
        if not worker.flight:
            worker.handle.channel.finish()
    for worker in workers:
        worker.handle.stop(0.0 if worker.flight else _CLOSE_SECONDS)
    selector.close()
