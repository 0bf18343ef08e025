"""Background work in threads: requests go in, and come out with their results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from turngym.agents.core import Request

T = TypeVar("T")


class Background(Generic[T]):
    """Works on requests concurrently; no thread outlives the work.

    Args:
        workers: Maximum number of concurrent requests.
        name: Name of the threads.
    """

    def __init__(self, workers: int, name: str) -> None:
        self.workers = workers
        self.name = name
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Future[T], Request] = {}

    @property
    def is_idle(self) -> bool:
        """True if nothing is in progress."""
        return self._pool is None

    def begin(self, request: Request, work: Callable[[], T]) -> None:
        """Start working on a request and return immediately."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=self.name)
        self._pending[self._pool.submit(work)] = request

    def finished(self, wait: bool) -> list[tuple[Request, T]]:
        """Return newly finished work, each once and in the order in which it was started.

        Args:
            wait: Wait until there is something; if idle, return nothing.
        """
        done = futures.wait(self._pending, None if wait else 0, futures.FIRST_COMPLETED).done
        found = [(self._pending.pop(future), future.result()) for future in list(self._pending) if future in done]
        if not self._pending and self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        return found

    def abandon(self, cut: Callable[[], None]) -> None:
        """Cancel everything immediately; does nothing if idle.

        Args:
            cut: Called to make running work end soon.
        """
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        cut()
        self._pool.shutdown()
        self._pool = None
        self._pending = {}
