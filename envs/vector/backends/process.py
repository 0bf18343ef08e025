"""Runs the slots in worker processes: an environment that breaks its process ends only its own episode."""

from __future__ import annotations

import os
import pickle
import selectors
import time
import weakref
from collections.abc import Sequence
from typing import Any, cast

from gymnasium.vector.utils import CloudpickleWrapper

from turngym.envs.vector.backends.base import VECTOR_BACKENDS, BackendOptions
from turngym.envs.vector.backends.channel import Garbled, encode
from turngym.envs.vector.backends.forking.fork_server import ForkServer
from turngym.envs.vector.backends.forking.handle import Handle
from turngym.envs.vector.backends.worker import IDLE, STARTING
from turngym.envs.vector.backends.workers import Job, Order, Worker, WorkersBackend, num_processors, shares
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Op
from turngym.errors import ConfigError, TurngymError

_START_SECONDS = 120.0
_CLOSE_SECONDS = 5.0
_DEATH_SECONDS = 1.0
_SILENT_SECONDS = 60.0
_PATIENCE_SECONDS = 1.0
_MOVE_SECONDS = 0.25
"""Processor time, as a rough guess, of moving a slot to its own process: imports, and in some worlds an engine."""


class ProcessWorker(Worker):
    """One worker of the pool: a process, which may be replaced.

    Args:
        fork_server: Starts the processes.
        makers: The makers of its slots, by index.
        memory_limit_mib: Memory the process may allocate, in MiB.
        selector: Watches the pipe of each new process.
    """

    handle: Handle

    def __init__(
        self,
        fork_server: ForkServer,
        makers: dict[int, Maker],
        memory_limit_mib: int | None,
        selector: selectors.BaseSelector,
    ) -> None:
        self._fork_server = fork_server
        self._makers = pickle.dumps(CloudpickleWrapper(cast("Any", makers)))
        self._memory_limit_mib = memory_limit_mib
        self._selector = selector
        self.heard = 0.0
        """Time of the last message in either direction, from which the liveness limit counts."""
        super().__init__(list(makers))

    def launch(self) -> None:
        """Start a process."""
        self.handle = Handle(self._fork_server, self._makers, self._memory_limit_mib)
        self._selector.register(self.handle.channel, selectors.EVENT_READ, self)

    def end(self, patience_seconds: float) -> int:
        """End the process; return its exit code."""
        self._selector.unregister(self.handle.channel)
        return self.handle.stop(patience_seconds)

    def kill(self) -> None:
        """End the process without waiting for its end."""
        self._selector.unregister(self.handle.channel)
        self.handle.kill()


@VECTOR_BACKENDS.register("process")
class ProcessBackend(WorkersBackend[ProcessWorker]):
    """Runs slots in worker processes; survives one that dies, hangs or garbles its pipe.

    Each process shows its current job in shared memory, so that the slot that broke it is always known.
    """

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        if os.name != "posix":
            raise ConfigError('the backend "process" needs a POSIX system. Pass backend="sync".')
        self._selector = selectors.DefaultSelector()
        self._fork_server = fork_server = ForkServer()
        self._leaving: list[tuple[float, Handle]] = []
        """Processes that are closing, with their deadlines."""
        everything = self._workers, self._helpers, self._leaving
        self._finalizer = weakref.finalize(self, _end_all, *everything, self._selector, fork_server, os.getpid())
        for share in shares(makers, min(options.num_workers or num_processors(), len(makers))):
            self._workers.append(ProcessWorker(fork_server, share, options.memory_limit_mib, self._selector))

    def shut_down(self) -> None:
        """End every worker."""
        self._finalizer()

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [worker.handle.pid for worker in [*self._workers, *self._helpers.values()]]

    def _transmit(self, worker: ProcessWorker, jobs: list[Order]) -> None:
        frame = encode(("run", jobs))
        worker.heard = time.monotonic()
        try:
            worker.handle.channel.send(frame)
        except OSError:
            self._bury(worker)

    def _wait(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            self._read(key.data)

    def _read(self, worker: ProcessWorker) -> None:
        worker.heard = time.monotonic()
        try:
            messages = worker.handle.channel.poll()
        except EOFError:
            self._bury(worker)
        except Garbled:
            worker.kill()
            alone = next(iter(worker.flight.values())) if len(worker.flight) == 1 else None
            self._replace(worker, alone, "garbage on the pipe")
        else:
            for message in messages:
                self._accept(worker, message)
        self._go_on(worker)

    def _look_after(self, worker: ProcessWorker, now: float) -> None:
        """Detect whether it hangs, or has died while something holds its pipe open."""
        serial, is_repeating, began = worker.handle.board.read()
        job = worker.flight.get(serial)
        limit = self._longest if job is None else self._limit_of(job, is_repeating)
        is_late = serial not in (IDLE, STARTING) and limit is not None and now - began > limit
        if not worker.handle.is_running():
            self._bury(worker)
        elif is_late and limit is not None:
            worker.kill()
            fault = "it did not end" if job is None else self._timeout(job, limit, is_repeating)
            self._replace(worker, job, fault)
            self._take_out(worker, list(worker.queue)[1:])
        elif serial == STARTING and now - worker.started > _START_SECONDS:
            late = f"a worker process has not begun its work within {_START_SECONDS:g} s."
            raise self._give_up(TurngymError(late))
        elif serial == IDLE and now - max(worker.heard, began) > _SILENT_SECONDS:
            worker.kill()  # it was stopped, or something in it keeps Python's global lock between two jobs
            self._replace(worker, self._alone(worker), f"no sign of life for {_SILENT_SECONDS:g} s")
        elif job is not None and limit is not None and self._is_slow(worker, job, now - began, limit):
            worker.handle.board.recall(max(worker.flight))
            self._take_out(worker, [other for other in (*worker.flight.values(), *worker.queue) if other is not job])
            return
        else:
            return
        self._send(worker)

    # Slots that wait behind one that may hang.

    def _is_slow(self, worker: ProcessWorker, job: Job, seconds: float, limit_seconds: float) -> bool:
        """Return whether others wait so long behind a job that bringing them back elsewhere costs no more than that."""
        waiting = [other for other in (*worker.flight.values(), *worker.queue) if other.slot != job.slot]
        patience = min(_PATIENCE_SECONDS, limit_seconds / 4)
        if not waiting or seconds < patience:
            return False
        longest = max(1 + len(self._journals[other.slot].log) for other in waiting)
        moving = len({other.slot for other in waiting}) * _MOVE_SECONDS / num_processors()
        patience = max(patience, longest * self.latencies.mean_seconds(), min(moving, limit_seconds / 4))
        return patience < seconds < limit_seconds / 2

    def _take_out(self, worker: ProcessWorker, jobs: list[Job]) -> None:
        """Give each waiting slot of a worker its own worker for the rest of its episode.

        Where several slots hang, their limits run out at the same time and not one after the other.
        """
        keeps = next((job.slot for job in (*worker.flight.values(), *worker.queue) if job not in jobs), None)
        for job in jobs:
            if job.slot == keeps:
                continue
            worker.flight.pop(job.serial, None)
            if job in worker.queue:
                worker.queue.remove(job)
            helper = self._helpers.get(job.slot)
            if helper is None:
                makers = {job.slot: self.makers[job.slot]}
                helper = ProcessWorker(self._fork_server, makers, self.options.memory_limit_mib, self._selector)
                self._helpers[job.slot] = helper
                self._lost.add(job.slot)
            helper.queue.append(job)
            self._send(helper)

    def _prepare(self, slot: int, op: Op) -> None:
        """Let a slot that was taken out of its worker go back to it where nothing has to be repeated for that."""
        begins_anew = op[0] == "restore" or (op[0] == "reset" and op[1] is not None)
        helper = self._helpers.get(slot)
        if helper is None or not begins_anew or helper.flight or helper.queue:
            return
        del self._helpers[slot]
        self._lost.add(slot)
        self._selector.unregister(helper.handle.channel)
        helper.handle.channel.finish()
        now = time.monotonic()
        self._leaving.append((now + _CLOSE_SECONDS, helper.handle))
        for entry in list(self._leaving):
            if now > entry[0] or not entry[1].is_running():
                entry[1].stop(0.0)
                self._leaving.remove(entry)

    def _renew(self, worker: ProcessWorker) -> None:
        """Restart a worker that has ended, unless it was a helper that is no longer needed."""
        slot = worker.slots[0]
        if self._helpers.get(slot) is worker and not worker.queue:
            del self._helpers[slot]
        else:
            worker.start()

    def _bury(self, worker: ProcessWorker) -> None:
        """Replace a worker that died; the job that it was doing is the cause, or the one that was alone in it."""
        serial, *_ = worker.handle.board.read()
        code = worker.end(_DEATH_SECONDS)
        culprit = self._alone(worker) if serial == IDLE else worker.flight.get(serial)
        self._replace(worker, culprit, f"worker died (exit code {code})")

    def _alone(self, worker: ProcessWorker) -> Job | None:
        """Return the job of a worker that ended between two jobs, as after its descriptors were closed in a step.

        While several jobs are in flight the culprit is unknown, so they are repeated one by one.
        """
        return next(iter(worker.flight.values())) if worker.is_cautious and len(worker.flight) == 1 else None


def _end_all(
    workers: list[ProcessWorker],
    helpers: dict[int, ProcessWorker],
    leaving: list[tuple[float, Handle]],
    selector: selectors.BaseSelector,
    fork_server: ForkServer,
    pid: int,
) -> None:
    """End every worker: the idle ones may close their environments, the busy ones are killed."""
    if os.getpid() != pid:
        return  # a forked copy of this process: the workers belong to the original
    everyone = [*workers, *helpers.values()]
    for worker in everyone:
        if not worker.flight:
            worker.handle.channel.finish()
    deadline = time.monotonic() + _CLOSE_SECONDS  # all of them close their environments at the same time
    for worker in everyone:
        worker.handle.stop(0.0 if worker.flight else max(0.0, deadline - time.monotonic()))
    for until, handle in leaving:
        handle.stop(max(0.0, min(until, deadline) - time.monotonic()))
    fork_server.close()
    selector.close()
