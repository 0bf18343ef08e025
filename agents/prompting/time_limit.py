"""A limit on the processor time of a call in this thread, for untrusted code in pure Python such as chat templates."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LOOK_SECONDS = 0.25


@dataclass(eq=False)
class _Watched:
    thread: int
    clock: int
    end: float
    error: type[Exception]
    is_raised: bool = False


class _Watchdog:
    """One thread that raises an exception in those that take too long; it rests while there are none."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        """Start without a thread, as in a forked process."""
        self._changed = threading.Condition()
        self._watched: set[_Watched] = set()
        self._is_started = False

    @contextmanager
    def watching(self, seconds: float, error: type[Exception]) -> Iterator[None]:
        thread = threading.get_ident()
        clock = time.pthread_getcpuclockid(thread) if hasattr(time, "pthread_getcpuclockid") else time.CLOCK_MONOTONIC
        entry = _Watched(thread, clock, time.clock_gettime(clock) + seconds, error)
        with self._changed:
            self._watched.add(entry)
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._run, name="turngym-time-limit", daemon=True).start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._watched.discard(entry)
                if entry.is_raised:  # it may be on its way still
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watched:
                    self._changed.wait()
                for entry in [each for each in self._watched if time.clock_gettime(each.clock) > each.end]:
                    entry.is_raised = True
                    self._watched.discard(entry)
                    raised = ctypes.py_object(entry.error)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(entry.thread), raised)
            time.sleep(_LOOK_SECONDS)


_watchdog = _Watchdog()


@contextmanager
def time_limit(seconds: float, error: type[Exception]) -> Iterator[None]:
    """Raise an exception inside the block once it has used so much processor time of its thread.

    Only bytecode is interrupted, not a single long call into C.

    Args:
        seconds: Processor time, so that a busy machine changes nothing.
        error: Raised without arguments.

    >>> with time_limit(60.0, ValueError):
    ...     sum(range(4))
    6
    """
    with _watchdog.watching(seconds, error):
        yield
