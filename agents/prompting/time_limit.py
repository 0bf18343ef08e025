"""A limit on the processor time of a call in this thread, for untrusted code in pure Python such as chat templates.

The exception may be raised between any two instructions of the watched thread. So that thread takes no lock after its
limit has started: it tells the watchdog with plain attributes that its block has ended.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from contextlib import AbstractContextManager
from queue import SimpleQueue

_LOOK_SECONDS = 0.25


class _Limit(AbstractContextManager[None]):
    """One block. Its thread writes ``is_done``; the watchdog writes ``is_taken`` and ``is_settled``.

    The watchdog sets ``is_taken`` before it looks at ``is_done``, and the thread sets ``is_done`` before it looks at
    ``is_taken``: so either the watchdog sees that the block has ended and raises nothing, or the thread sees that an
    exception may be raised, and waits until it has been. It is raised once at most, so one that lands in the exit is
    the only one.
    """

    def __init__(self, seconds: float, error: type[Exception]) -> None:
        self.error = error
        self.is_done = self.is_taken = self.is_settled = False
        self._thread = threading.get_ident()
        has_clock = hasattr(time, "pthread_getcpuclockid")
        self._clock = time.pthread_getcpuclockid(self._thread) if has_clock else time.CLOCK_MONOTONIC
        self._end = time.clock_gettime(self._clock) + seconds

    def __enter__(self) -> None:
        self._limits = _watchdog.started()
        self._limits.put(self)

    def __exit__(self, *_: object) -> None:
        try:
            self.is_done = True
            while self.is_taken and not self.is_settled and _watchdog.limits is self._limits:  # others after a fork
                time.sleep(0)
            if self.is_taken:  # the exception may be on its way still
                _raise_in(self._thread, None)
        except self.error:
            pass

    def look(self) -> bool:
        """Raise the exception in the thread if its time is over; return whether the block needs no further look."""
        try:
            if self.is_done or time.clock_gettime(self._clock) <= self._end:
                return self.is_done
        except OSError:  # the thread has ended since
            return True
        self.is_taken = True
        if not self.is_done:
            _raise_in(self._thread, self.error)
        self.is_settled = True
        return True


class _Watchdog:
    """One thread that looks at the limits of all others; it rests while there are none."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        """Start without a thread, as in a forked process."""
        self.limits: SimpleQueue[_Limit] = SimpleQueue()
        self._starting = threading.Lock()
        self._is_started = False

    def started(self) -> SimpleQueue[_Limit]:
        """Return where new limits are put. The lock is free of exceptions: no limit runs before the first start."""
        if not self._is_started:
            with self._starting:
                if not self._is_started:
                    given = (self.limits,)
                    threading.Thread(target=_watch, args=given, name="turngym-time-limit", daemon=True).start()
                    self._is_started = True
        return self.limits


def _watch(limits: SimpleQueue[_Limit]) -> None:
    watched: list[_Limit] = []
    while True:
        while not watched or not limits.empty():
            watched.append(limits.get())
        watched = [each for each in watched if not each.look()]
        time.sleep(_LOOK_SECONDS)


def _raise_in(thread: int, error: type[Exception] | None) -> None:
    """Raise an exception in a thread at its next instruction; None takes back one that was not raised yet."""
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


_watchdog = _Watchdog()


def time_limit(seconds: float, error: type[Exception]) -> AbstractContextManager[None]:
    """Raise an exception inside the block once it has used so much processor time of its thread.

    Only bytecode is interrupted, not a single long call into C. A block has no limit inside that of another one: a
    thread holds one exception that waits.

    Args:
        seconds: Processor time, so that a busy machine changes nothing.
        error: Raised without arguments.

    >>> with time_limit(60.0, ValueError):
    ...     sum(range(4))
    6
    """
    return _Limit(seconds, error)
