"""Threads for blocking functions, so that they do not block an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Broke(Exception):
    """A function tried to end its thread or process, as ``sys.exit()`` does."""


class _Job:
    __slots__ = ("after_all", "call", "future", "is_done", "is_given_up", "loop")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.is_done = self.is_given_up = False
        self.after_all: Callable[[], Any] | None = None


class Threads:
    """Runs blocking functions in daemon threads, started when all others are busy.

    Unlike in an executor, a thread that hangs is abandoned: another replaces it, and the process can exit.

    Args:
        limit: Maximum number of concurrent functions, at least 1.

    >>> threads = Threads(2)
    >>> asyncio.run(threads.run(sum, [1, 2]))
    3
    >>> threads.close()
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.given_up = 0
        """Number of abandoned functions that still run."""
        self._ready = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._idle = self.count = 0
        self._is_closed = False

    async def run(
        self, function: Callable[..., Any], *args: Any, after_all: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Any:
        """Run a function and return its result.

        Args:
            function: Program to run.
            *args: Passed to it.
            after_all: Called in its thread if it finishes after the caller was cancelled.
            **kwargs: Passed to it.

        Raises:
            Broke: The function tried to end its thread or process.
        """
        job = _Job(lambda: function(*args, **kwargs))
        with self._ready:
            self._jobs.append(job)
            self._wake()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._give_up(job, after_all)
            raise

    def close(self) -> None:
        """End every idle thread."""
        with self._ready:
            self._is_closed = True
            self._ready.notify_all()

    def _give_up(self, job: _Job, after_all: Callable[[], Any] | None) -> None:
        with self._ready:
            if job in self._jobs:  # not started
                job.call = after_all or _nothing
            elif job.is_done:  # too late for the caller
                self._jobs.append(_Job(after_all or _nothing))
                self._wake()
            else:
                job.is_given_up, job.after_all = True, after_all
                self.given_up += 1
                self.count -= 1  # it may be replaced

    def _wake(self) -> None:
        if self._idle:
            self._idle -= 1  # this one is taken, whether it has woken up yet or not
            self._ready.notify()
        elif self.count < self.limit:
            self.count += 1
            threading.Thread(target=self._serve, name="turngym-session", daemon=True).start()

    def _serve(self) -> None:
        while True:
            with self._ready:
                while not self._jobs:
                    if self._is_closed:
                        self.count -= 1
                        return
                    self._idle += 1
                    self._ready.wait()
                job = self._jobs.popleft()
            value, error = _result(job.call)
            with self._ready:
                job.is_done = True
                if job.is_given_up:
                    self.given_up -= 1
                    break
            _tell(job, value, error)
        if job.after_all is not None:
            _result(job.after_all)


def _nothing() -> None:
    """Do nothing."""


def _result(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except Exception as error:  # raised again where the caller waits
        return None, error
    except BaseException as error:  # SystemExit would end this thread silently
        broke = Broke(f"{type(error).__name__}: {error}")
        broke.__cause__ = error
        return None, broke


def _tell(job: _Job, value: Any, error: BaseException | None) -> None:
    def settle() -> None:
        if job.future.done():
            return
        if error is None:
            job.future.set_result(value)
        else:
            job.future.set_exception(error)

    try:
        job.loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed
        return
