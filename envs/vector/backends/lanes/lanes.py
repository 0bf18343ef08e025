"""A thread for each slot, which can be abandoned when its environment hangs."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from turngym.envs.vector.backends.worker import run_job
from turngym.envs.vector.backends.workers import Order
from turngym.envs.vector.slots.boundary import describe
from turngym.envs.vector.slots.slot import Slot


@dataclass(frozen=True, slots=True)
class Broken:
    """The answer of an environment that tried to end more than its episode, as ``sys.exit()`` does."""

    fault: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operation.

    Args:
        lane: Lane of the job; answers of abandoned lanes are ignored.
        serial: Number of the job.
        content: The result, a failure, or :class:`Broken`.
        start: Start of the episode, if the operation was a reset.
        kind: Name of the operation.
        seconds: Duration.
    """

    lane: Lane
    serial: int
    content: Any
    start: Any
    kind: str
    seconds: float


class Gate:
    """Lets only so many operations run at once.

    Args:
        limit: Maximum number; None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._turns = None if limit is None else threading.Semaphore(limit)
        self._lock = threading.Lock()
        self._inside: set[int] = set()

    def enter(self, lane: Lane) -> None:
        """Wait for a turn."""
        if self._turns is not None:
            self._turns.acquire()
            with self._lock:
                self._inside.add(id(lane))

    def leave(self, lane: Lane) -> None:
        """Return the turn, if the lane has one."""
        if self._turns is not None:
            with self._lock:
                if id(lane) not in self._inside:
                    return
                self._inside.remove(id(lane))
            self._turns.release()


class Lane:
    """Runs the operations of one slot, one after the other, in a separate thread, started when it is needed.

    Args:
        index: Number of the slot.
        slot: The slot.
        post: Destination of answers.
        gate: Limits how many lanes are at work.
    """

    def __init__(self, index: int, slot: Slot, post: SimpleQueue[Answer], gate: Gate) -> None:
        self.index = index
        self.slot = slot
        self.post = post
        self.gate = gate
        self.began = math.inf
        """When the current operation started; infinite if there is none."""
        self.is_repeating = False
        """True if the current operation is part of a replay that rebuilds the slot."""
        self.is_left = False
        """True if this lane is abandoned."""
        self.has_ended = threading.Event()
        """Set when the environment is closed and nothing runs any more."""
        self._inbox: SimpleQueue[Order | None] = SimpleQueue()
        self._has_thread = False

    def begin(self, is_repeating: bool) -> None:
        """Record that a part of an operation starts."""
        self.began = time.monotonic()
        self.is_repeating = is_repeating

    def put(self, order: Order) -> None:
        """Run an operation."""
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._serve, name="turngym-slot", daemon=True).start()
        self._inbox.put(order)

    def leave(self) -> None:
        """Abandon the lane: the environment is closed once it is idle, if ever."""
        self.is_left = True
        self.gate.leave(self)
        if self._has_thread:
            self._inbox.put(None)
        else:
            self.has_ended.set()

    def _serve(self) -> None:
        while (order := self._inbox.get()) is not None and not self.is_left:
            self.gate.enter(self)
            stays = self.is_left or self.run(order)  # abandoned while it waited for its turn
            self.gate.leave(self)
            if not stays:
                return
        try:
            self.slot.close()
        finally:
            self.has_ended.set()

    def run(self, order: Order) -> bool:
        """Run one operation in this thread and send its answer; returns whether the thread is still needed."""
        serial, _, journal, op = order
        self.began = began = time.monotonic()
        try:
            content = run_job(self.slot, journal, op, self.begin)
        except BaseException as error:  # a thread that ends must report it
            content = Broken(describe(error))
        self.answer(serial, op[0], content, time.monotonic() - began)
        return True

    def answer(self, serial: int, kind: str, content: Any, seconds: float) -> None:
        """Send what an operation led to."""
        self.began = math.inf
        start = self.slot.start if kind == "reset" else None
        self.post.put(Answer(self, serial, content, start, kind, seconds))


def leave_all(lanes: Iterable[Lane], idle_seconds: float, busy_seconds: float) -> int:
    """Leave lanes and wait for them, all at the same time.

    Args:
        lanes: The lanes.
        idle_seconds: Timeout of those that only have to close their environments.
        busy_seconds: Timeout of those in the middle of an operation.

    Returns:
        How many have not ended.
    """
    lanes = list(lanes)
    began = time.monotonic()
    limits = [busy_seconds if lane.began < math.inf else idle_seconds for lane in lanes]
    for lane in lanes:
        with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter ends
            lane.leave()
    ended = [
        lane.has_ended.wait(max(0.0, limit - (time.monotonic() - began)))
        for lane, limit in zip(lanes, limits, strict=True)
    ]
    return ended.count(False)
