"""The browsers of this process: a pool on an event loop in a thread, for environments in any thread, on any loop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from turngym.envs.web.driver.browser import BrowserPool
from turngym.envs.web.driver.tab import CLOSE_SECONDS
from turngym.system.processes import OncePerProcess

T = TypeVar("T")


class BrowserThread:
    """The event loop, in a separate thread, that a pool of browsers runs on.

    Args:
        options: Options of :class:`BrowserPool`.
    """

    def __init__(self, **options: Any) -> None:
        self.pool = BrowserPool(**options)
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turngym-browser", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it, from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def attend(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and await it on another loop; cancelling this cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a coroutine there and do not wait for it."""
        if self.process == os.getpid() and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(work, self._loop)
        else:
            work.close()

    def stop(self) -> None:
        """Close the browsers and end the thread."""
        if self._loop.is_closed() or self.process != os.getpid():
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self.pool.close(), self._loop).result(4 * CLOSE_SECONDS)
        for host in self.pool.browsers:
            host.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


def _start() -> BrowserThread:
    started = BrowserThread()
    atexit.register(started.stop)
    return started


_shared = OncePerProcess(_start)


def shared_pool() -> BrowserThread:
    """Return the pool of this process, started on first use and closed when the interpreter ends.

    Raises:
        MissingExtra: Playwright or a browser is missing.
    """
    return _shared.get()


def close_shared_pool() -> None:
    """Close the pool of this process, if there is one; the next use starts a new one."""
    held = _shared.take()
    if held is not None:
        held.stop()
