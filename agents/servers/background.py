"""Work that is done in threads while the caller goes on: requests go in, and come out with their results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from turngym.agents.core import Request

T = TypeVar("T")


class Background(Generic[T]):
    """Works at requests, some of them at the same time; no thread outlives the work.

    Args:
        workers: Most requests at the same time.
        name: How the threads are called.
    """

    def __init__(self, workers: int, name: str) -> None:
        self.workers = workers
        self.name = name
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Future[T], Request] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self._pool is None

    def begin(self, request: Request, work: Callable[[], T]) -> None:
        """Begin to work at a request, and return at once."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=self.name)
        self._pending[self._pool.submit(work)] = request

    def finished(self, wait: bool) -> list[tuple[Request, T]]:
        """Return what is done by now, each once and in the order in which it was begun.

        Args:
            wait: Wait until there is something; with nothing under way, return nothing.
        """
        done = futures.wait(self._pending, None if wait else 0, futures.FIRST_COMPLETED).done
        found = [(self._pending.pop(future), future.result()) for future in list(self._pending) if future in done]
        if not self._pending and self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        return found

    def abandon(self, cut: Callable[[], None]) -> None:
        """Give up everything, at once; harmless where there is nothing.

        Args:
            cut: Makes work that is under way end soon.
        """
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        cut()
        self._pool.shutdown()
        self._pool = None
        self._pending = {}
