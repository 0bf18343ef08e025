"""A pool of browsers: Chromium driven by Playwright, with several contexts each, replaced when they fail.

A pool belongs to one event loop; :mod:`turngym.envs.web.driver.thread` gives it one of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from turngym.arithmetic import float_sum
from turngym.envs.web.driver.chromium import FLAGS, Chromium, find_browser, require_playwright
from turngym.envs.web.driver.frames import STEERED_FLAGS, Frames, can_be_steered, contexts, open_steered
from turngym.envs.web.driver.tab import CLOSE_SECONDS, SCRIPT, BrowserFault, Tab
from turngym.errors import ConfigError
from turngym.system.processes import descendants

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, Route

VIEWPORT = 500, 320
_START_SECONDS = 60.0
_NOWHERE = "http://127.0.0.1:1"
"""A non-existent proxy, for everything that a page may not reach."""


class BrowserPool:
    """Browsers, each with several tabs; use it on one event loop.

    A tab is handed out by :meth:`open` and given back by :meth:`release`; it is new each time. A browser whose memory
    exceeds the limit gets no new tabs and ends with its last one. One that has ended, or cannot even close a tab, is
    replaced, and :attr:`counts` counts this (``browser_lost``), blocked attempts (``dialog``, ``popup``, ``download``,
    ``navigation``, ``hang``), and ``launched`` and ``opened``.

    Args:
        tabs_per_browser: Maximum number of tabs per browser process.
        max_tabs: Maximum number of tabs.
        memory_limit_mib: Memory of one browser with all its processes, above which it is replaced.
        timeout_seconds: Time limit of one page operation.
        executable: The browser; None to look for one.

    Raises:
        MissingExtra: Playwright or a browser is missing.
        ConfigError: A limit is not positive.
    """

    def __init__(
        self,
        *,
        tabs_per_browser: int = 8,
        max_tabs: int = 64,
        memory_limit_mib: int = 2048,
        timeout_seconds: float = 15.0,
        executable: str | None = None,
    ) -> None:
        for name, value in (
            ("tabs_per_browser", tabs_per_browser),
            ("max_tabs", max_tabs),
            ("memory_limit_mib", memory_limit_mib),
            ("timeout_seconds", timeout_seconds),
        ):
            if value <= 0:
                raise ConfigError(f"{name} of the browser pool must be above 0, got {value!r}.")
        require_playwright("the browser pool")
        self.executable = executable or find_browser("the browser pool")
        self.tabs_per_browser, self.max_tabs = tabs_per_browser, max_tabs
        self.memory_limit_mib, self.timeout_seconds = memory_limit_mib, timeout_seconds
        self.counts: Counter[str] = Counter()
        self.browsers: list[Chromium] = []
        self._driver: Playwright | None = None
        self._lock = asyncio.Lock()

    async def open(
        self, allowed: Sequence[str], viewport: tuple[int, int] = VIEWPORT, *, is_steered: bool = False
    ) -> Tab:
        """Return a new tab that may show addresses with one of these starts, and reach nothing else.

        Args:
            allowed: Starts of addresses, such as ``file:///srv/pages/`` or ``http://127.0.0.1:8000/``.
            viewport: Width and height of the page in pixels.
            is_steered: Whether the page draws only when told to, where the browser can do that: images are had sooner,
                and the mouse need not wait for the next frame.

        Raises:
            BrowserFault: There are too many tabs already, or no browser can be started.
        """
        is_steered = is_steered and can_be_steered(self.executable)
        for attempt in range(3):
            host = await self._host(is_steered)
            try:
                return await asyncio.wait_for(self._open(host, allowed, viewport), self.timeout_seconds * 2)
            except Exception as error:  # on any error of a dying browser, another one gets the tab
                await self._lose(host)
                if attempt == 2:
                    raise BrowserFault(f"no browser opens a page: {type(error).__name__}: {error}") from error
            finally:
                host.opening -= 1
        raise AssertionError("unreachable")

    async def release(self, tab: Tab) -> None:
        """Close a tab; a browser that cannot do it is replaced, and one that is used up ends with its last tab."""
        host = next((each for each in self.browsers if tab in each.tabs), None)
        has_closed = await tab.close()
        if host is None:
            return
        host.tabs.discard(tab)
        if not has_closed:
            self.counts["stuck"] += 1
            host.is_retired = True
        elif host.memory_mib() > self.memory_limit_mib:
            self.counts["memory"] += 1
            host.is_retired = True
        if host.is_retired and not host.load:
            await self._end(host)

    async def close(self) -> None:
        """Close everything; processes that do not end by themselves are killed."""
        for host in list(self.browsers):
            await self._end(host)
        driver, self._driver = self._driver, None
        if driver is not None:
            with contextlib.suppress(Exception):  # it may have died before
                await asyncio.wait_for(driver.stop(), CLOSE_SECONDS)

    def memory_mib(self) -> float:
        """Return the memory of all browsers, without Playwright's driver."""
        return float_sum(host.memory_mib() for host in self.browsers)

    # Browsers.

    async def _host(self, is_steered: bool) -> Chromium:
        """Return a browser with room for one more tab, counted as opening there."""
        async with self._lock:
            for host in list(self.browsers):
                if not host.is_alive():
                    await self._lose(host)
            if sum(host.load for host in self.browsers) >= self.max_tabs:
                raise BrowserFault(f"{self.max_tabs} tabs are open already: close environments, or raise max_tabs")
            fitting = [host for host in self.browsers if host.is_steered == is_steered and not host.is_retired]
            free = [host for host in fitting if host.load < self.tabs_per_browser]
            host = free[0] if free else await self._launch(is_steered)
            host.opening += 1
            return host

    async def _launch(self, is_steered: bool) -> Chromium:
        for attempt in range(2):
            try:
                browser = await asyncio.wait_for(self._start(is_steered), _START_SECONDS)
                session = await browser.new_browser_cdp_session()
                told = await asyncio.wait_for(session.send("SystemInfo.getProcessInfo"), self.timeout_seconds)
                break
            except Exception as error:  # the driver may have died: a new one is started, once
                self._driver = None
                if attempt:
                    raise BrowserFault(f"{self.executable} does not start: {error}") from error
        process = next(each["id"] for each in told["processInfo"] if each["type"] == "browser")
        host = Chromium(browser, process, session, is_steered=is_steered)
        self.browsers.append(host)
        self.counts["launched"] += 1
        return host

    async def _start(self, is_steered: bool) -> Browser:
        from playwright.async_api import async_playwright

        if self._driver is None:
            self._driver = await async_playwright().start()
        flags = [*FLAGS, "--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else list(FLAGS)
        flags += STEERED_FLAGS if is_steered else ()
        return await self._driver.chromium.launch(
            executable_path=self.executable, headless=True, args=flags, handle_sigint=False, handle_sigterm=False
        )

    async def _lose(self, host: Chromium) -> None:
        if host in self.browsers:
            self.counts["browser_lost"] += 1
            await self._end(host)

    async def _end(self, host: Chromium) -> None:
        if host in self.browsers:
            self.browsers.remove(host)
        family = descendants(host.process)
        with contextlib.suppress(Exception):  # it may be gone or stuck: it is killed below
            await asyncio.wait_for(host.browser.close(), CLOSE_SECONDS)
        host.kill()
        for process in family[1:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)

    # Tabs.

    async def _open(self, host: Chromium, allowed: Sequence[str], viewport: tuple[int, int]) -> Tab:
        async with host.naming:  # a context differs from the others by being new
            known = await contexts(host.session) if host.is_steered else set()
            context = await _new_context(host.browser, allowed, viewport)
            page = await (open_steered(host.session, context, known) if host.is_steered else context.new_page())
        session = await context.new_cdp_session(page)
        frames = Frames(session, host.brush, self.timeout_seconds) if host.is_steered else None
        tab = Tab(context, page, session, allowed, self.timeout_seconds, self.counts, host.is_alive, frames)
        host.tabs.add(tab)
        self.counts["opened"] += 1
        return tab


async def _new_context(browser: Browser, allowed: Sequence[str], viewport: tuple[int, int]) -> BrowserContext:
    is_local = all(start.startswith("file:") for start in allowed)
    hosts = {urlsplit(start).netloc for start in allowed} - {""}
    context = await browser.new_context(
        viewport={"width": viewport[0], "height": viewport[1]},
        locale="en-US",
        timezone_id="UTC",
        color_scheme="light",
        reduced_motion="reduce",
        accept_downloads=False,
        service_workers="block",
        offline=is_local,
        proxy={"server": _NOWHERE, "bypass": ",".join(sorted(hosts))},  # web sockets are not routed as requests are
    )
    await context.add_init_script(SCRIPT)
    if not is_local:
        await _block_others(context, allowed)
    return context


async def _block_others(context: BrowserContext, allowed: Sequence[str]) -> None:
    """Let a context ask for nothing but what starts so."""
    starts = "|".join(re.escape(start) for start in (*allowed, "data:", "blob:"))

    async def refuse(route: Route) -> None:
        await route.abort("blockedbyclient")

    await context.route(re.compile(rf"^(?!{starts})"), refuse)
