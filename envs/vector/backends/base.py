"""The interface of a vector's backend: run operations on slots."""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar, Final, Self

from gymnasium.error import ClosedEnvironmentError

from turngym.envs.vector.backends.latency import Latencies
from turngym.envs.vector.options import read_own, require_positive
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Op
from turngym.registry import Registry


class HeldInterrupts:
    """Records Ctrl-C, and delivers it only where :meth:`check` is called.

    In any other thread than the main one, and where Ctrl-C is not handled in Python, it does nothing.
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._frame: FrameType | None = None
        self._is_caught = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._handler = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_caught, self._frame = True, frame

    def check(self) -> None:
        """Pass a recorded interrupt to the previous handler, which usually raises."""
        if self._is_caught:
            self._is_caught = False
            self._handler(signal.SIGINT, self._frame)

    def __exit__(self, *exception: object) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if exception[0] is None:
            self.check()


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Options of backends.

    Args:
        num_workers: Number of workers, at least 1; None lets the backend choose.
        step_timeout_seconds: Time limit of a step, beyond which it is a fault; None for none. ``sync`` cannot
            interrupt.
        reset_timeout_seconds: The same for a reset, which includes creating the environment.
        memory_limit_mib: Memory that each worker may allocate, in MiB; None for no limit.
        own: Options of this backend only; unknown ones are rejected.
    """

    num_workers: int | None = None
    step_timeout_seconds: float | None = 60.0
    reset_timeout_seconds: float | None = 120.0
    memory_limit_mib: int | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("num_workers", "step_timeout_seconds", "reset_timeout_seconds", "memory_limit_mib"):
            require_positive(name, getattr(self, name), is_whole=name in ("num_workers", "memory_limit_mib"))


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception for the caller, kept until the answer is fetched."""

    error: BaseException


_LOOK_SECONDS = 0.1
REFUSED: Final[tuple[Any, ...]] = (None, 0.0, False, False, {}, ())
"""Placeholder for the answer of a refused operation: the slot has no episode."""


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Options of a backend that has none."""


class Backend(ABC):
    """Runs operations of :class:`~turngym.envs.vector.slots.slot.Slot`, at most one per slot at a time.

    Args:
        makers: One per slot.
        options: Limits.
    """

    workers_replaced: int = 0
    """Workers that were killed or died and were replaced."""
    abandoned: int = 0
    """Number of abandoned environments, which hang and cannot be ended."""

    own_options: ClassVar[type[Any]] = NoOptions
    """A dataclass of this backend's own options."""

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        self.own = read_own(self.own_options, options.own)
        self.makers = makers
        self.options = options
        self.closed = False
        self.done: dict[int, Any] = {}
        """Answers that have not been fetched yet, by slot, in order of arrival."""
        self.refusal: BaseException | None = None
        """The first error for the caller among the operations of :meth:`stream`."""
        self.latencies = Latencies()
        self._waited_seconds = 0.0
        self._orphans: set[int] = set()

    @abstractmethod
    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Start one operation on each of the slots."""

    @abstractmethod
    def pump(self, timeout_seconds: float | None) -> None:
        """Wait until at least one more answer is in ``done``, or until the timeout; None waits for ever."""

    @abstractmethod
    def shut_down(self) -> None:
        """Close every environment and end every worker."""

    def run(self, slots: Sequence[int], ops: Sequence[Op]) -> list[Any]:
        """Run one operation on each of the slots and return the answers in that order.

        A refused operation does not affect the others: its error is raised when all have been run.
        """
        answers = list(self.stream(slots, ops))
        self.check()
        return answers

    def stream(self, slots: Sequence[int], ops: Sequence[Op]) -> Iterator[Any]:
        """Run one operation on each of the slots and yield the answers in that order.

        The caller takes them all, where an operation was refused :data:`REFUSED`, and then calls :meth:`check`.
        """
        for answer in self._all_of(slots, ops):
            yield self.refuse(answer.error) if isinstance(answer, Failure) else answer

    def refuse(self, error: BaseException) -> Any:
        """Keep the first error for :meth:`check`, and return the placeholder for the answer."""
        self.refusal = self.refusal or error
        return REFUSED

    def check(self) -> None:
        """Raise the error of an operation that was refused."""
        if self.refusal is not None:
            error, self.refusal = self.refusal, None
            raise error

    def _all_of(self, slots: Sequence[int], ops: Sequence[Op]) -> list[Any]:
        """Run operations and wait for all of them.

        An interrupt makes the running operations orphans; the next operation on their slots waits for their answers and
        discards them.
        """
        self.require_open()
        began = time.monotonic()
        with HeldInterrupts() as interrupts:
            try:
                if self._orphans:
                    self._wait_for([slot for slot in slots if slot in self._orphans], interrupts)
                self.submit(slots, ops)
                self._orphans.update(slots)
                return self._wait_for(slots, interrupts)
            finally:
                self._waited_seconds += time.monotonic() - began

    def _wait_for(self, slots: Sequence[int], interrupts: HeldInterrupts) -> list[Any]:
        """Wait for the answers of orphans and return them."""
        done = self.done
        for slot in slots:
            while slot not in done:
                self.pump(_LOOK_SECONDS)
                interrupts.check()
        self._orphans.difference_update(slots)
        return [done.pop(slot) for slot in slots]

    def collect(self, min_ready: int, timeout_seconds: float | None) -> list[tuple[int, Any]]:
        """Return the answers that are ready: at least ``min_ready``, unless the timeout expires."""
        self.require_open()
        began = time.monotonic()
        with HeldInterrupts() as interrupts:
            try:
                self._pump_until(min_ready, None if timeout_seconds is None else began + timeout_seconds, interrupts)
            finally:
                self._waited_seconds += time.monotonic() - began
        return self._fetch()

    def _pump_until(self, min_ready: int, deadline: float | None, interrupts: HeldInterrupts) -> None:
        """Look for answers at least once, until enough are there or the timeout expires."""
        self.pump(0.0)
        while len(self.done) - self._num_orphans_done() < min_ready:
            left = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, deadline - time.monotonic())
            interrupts.check()
            if left <= 0:
                return
            self.pump(left)

    def _num_orphans_done(self) -> int:
        return sum(slot in self.done for slot in self._orphans) if self._orphans else 0

    def _fetch(self) -> list[tuple[int, Any]]:
        """Return all available answers, except those of orphans."""
        for slot in [slot for slot in self._orphans if slot in self.done]:
            del self.done[slot]
            self._orphans.discard(slot)
        for slot, answer in self.done.items():
            if isinstance(answer, Failure):
                del self.done[slot]  # the other answers stay for the next call
                raise SlotFailure(slot, answer.error)
        ready, self.done = self.done, {}
        return list(ready.items())

    def report(self) -> dict[str, Any]:
        """Return how much was replaced and abandoned, how long the caller has waited, and the latencies of operations.

        The time of an operation is measured where it runs. One that exceeds its limit counts with the limit.
        """
        return {
            "workers_replaced": self.workers_replaced,
            "abandoned": self.abandoned,
            "waiting_seconds": self._waited_seconds,
            "busy_seconds": self.latencies.busy_seconds,
            **self.latencies.summary(),
        }

    def require_open(self) -> None:
        """Raise if the vector was closed."""
        if self.closed:
            raise ClosedEnvironmentError("this vector was closed: make a new one.")

    def close(self) -> None:
        """End everything; calling it again has no effect."""
        if not self.closed:
            self.closed = True
            self.shut_down()


class SlotFailure(Exception):
    """An operation of one slot was refused; the vector raises the error itself.

    Args:
        slot: The slot.
        error: Why.
    """

    def __init__(self, slot: int, error: BaseException) -> None:
        super().__init__(slot, error)
        self.slot = slot
        self.error = error


VECTOR_BACKENDS: Registry[type[Backend]] = Registry("vector backend", "turngym.envs.vector.backends")
