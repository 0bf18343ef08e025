"""Keeps a tab of the shared browsers for one environment, usable from any thread or loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from turngym.envs.web.driver.tab import BrowserFault, BrowserGone, Tab
from turngym.envs.web.driver.thread import BrowserThread, shared_pool

T = TypeVar("T")
_RECYCLED_AFTER = 200
"""Episodes after which a tab is replaced."""
_ENDING_SECONDS = 2.0
_ATTEMPTS = 3


class TabKeeper:
    """Keeps one tab, opened when it is needed.

    Coroutines of a subclass run on the thread of the shared browsers; :meth:`run` and :meth:`attend` bring them there.

    Args:
        viewport: Width and height of the page.
    """

    def __init__(self, viewport: tuple[int, int]) -> None:
        self.viewport = viewport
        self.is_steered = True
        """True if the page draws only when told to, where the browser can do that."""
        self._thread: BrowserThread | None = None
        self._tab: Tab | None = None

    # From other threads and loops.

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine where the browsers are."""
        return self._home().run(work)

    async def attend(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine where the browsers are."""
        return await self._home().attend(work)

    def _home(self) -> BrowserThread:
        if self._thread is None or self._tab is None:
            self._thread = shared_pool()
        return self._thread

    def shut(self) -> None:
        """Close the tab, from any thread."""
        if self._tab is not None:
            self.run(self.close())

    def let_go(self) -> None:
        """Close the tab in the background; for an environment that was not closed."""
        if self._tab is not None and self._thread is not None:
            self._thread.begin(self.close())

    # Where the browsers are.

    async def surely(
        self, work: Callable[[], Coroutine[Any, Any, T]], again: Callable[[], Coroutine[Any, Any, T]] | None = None
    ) -> T:
        """Run an operation, retrying where the browser fails meanwhile; the tab is dropped if that fails.

        Args:
            work: What to do, from wherever the page is.
            again: How to do it in a new tab; without it, as before.

        Raises:
            BrowserFault: The page breaks, or the browser fails three times.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await work()
            except BrowserFault as error:
                is_gone = isinstance(error, BrowserGone) or await self._is_browser_ending()
                await self.close()
                if not is_gone:
                    raise
            work = again or work
        try:
            return await work()
        except BrowserFault:
            await self.close()
            raise

    async def _is_browser_ending(self) -> bool:
        """Return whether the browser ends, too: a page's process may be seen to end before the browser's own."""
        if self._thread is None or self._tab is None:
            return False
        deadline = time.monotonic() + _ENDING_SECONDS
        while time.monotonic() < deadline:
            host = next((each for each in self._thread.pool.browsers if self._tab in each.tabs), None)
            if host is None or not host.is_alive():
                return True
            await asyncio.sleep(0.05)
        return False

    async def open_tab(self, allowed: Sequence[str], *, is_reset: bool) -> Tab:
        """Return the tab, a new one if there is none.

        Args:
            allowed: Starts of the addresses that a new one may show.
            is_reset: Whether an episode starts: then a tab that is used up or broken is replaced. Within an episode
                whatever is done with a broken one tells what broke it.
        """
        tab = self._tab
        if tab is not None and is_reset and (tab.resets >= _RECYCLED_AFTER or tab.fault):
            await self.close()
        if self._tab is None:
            assert self._thread is not None
            self._tab = await self._thread.pool.open(allowed, self.viewport, is_steered=self.is_steered)
        return self._tab

    async def close(self) -> None:
        """Close the tab; the next use opens one."""
        tab, self._tab = self._tab, None
        if tab is not None and self._thread is not None:
            await self._thread.pool.release(tab)
