"""A pool of browsers: Chromium driven by Playwright, several contexts in each, replaced when they break.

All of it runs on one event loop in a thread of its own, so that environments in any thread and on any loop can share
the browsers. :func:`shared_pool` is the one of this process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from turngym.envs.web.tab import CLOSE_SECONDS, SCRIPT, BrowserFault, Tab
from turngym.errors import ConfigError, MissingExtra, missing_extra

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, Route

T = TypeVar("T")
PROGRAMS = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-features=Translate,BackForwardCache,PaintHolding",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--js-flags=--max-old-space-size=256",
    "--force-color-profile=srgb",
)
VIEWPORT = 500, 320
_START_SECONDS = 60.0


def find_browser(feature: str) -> str:
    """Return the path of a Chromium: the variable ``TURNGYM_CHROMIUM``, else the first found on the PATH.

    Args:
        feature: What needs a browser, for the error message.

    Raises:
        MissingExtra: There is none.
    """
    named = os.environ.get("TURNGYM_CHROMIUM", "")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise MissingExtra(
            f"{feature} needs the browser Chromium, and there is none on the PATH or in TURNGYM_CHROMIUM: "
            "apt-get install chromium-headless-shell."
        )
    return found


def require_playwright(feature: str) -> None:
    """Raise unless the package playwright is installed.

    Raises:
        MissingExtra: It is not.
    """
    import importlib.util

    if importlib.util.find_spec("playwright") is None:
        raise missing_extra(feature, "playwright", "web")


class Chromium:
    """A running browser process and the tabs in it.

    Args:
        browser: Playwright's handle.
        processes: Process ids at the time it started, the browser's own first.
    """

    def __init__(self, browser: Browser, process: int) -> None:
        self.browser = browser
        self.process = process
        self.tabs: set[Tab] = set()
        self.opening = 0
        self.is_retired = False
        """Whether no new tab is opened in it."""

    @property
    def load(self) -> int:
        """Number of tabs, open or opening."""
        return len(self.tabs) + self.opening

    def memory_mib(self) -> float:
        """Return the memory of the browser and all its processes, shared pages counted once each (PSS)."""
        return sum(map(_proportional_mib, descendants(self.process)))

    def kill(self) -> None:
        """End the process and its children now."""
        for process in reversed(descendants(self.process)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Return a process and all that descend from it, parents first; empty where it has ended or /proc is absent."""
    if not Path("/proc", str(process)).exists():
        return []
    found = [process]
    for each in found:
        with contextlib.suppress(OSError):
            for task in Path("/proc", str(each), "task").iterdir():
                found.extend(int(child) for child in (task / "children").read_text().split())
    return found


def _proportional_mib(process: int) -> float:
    try:
        text = Path("/proc", str(process), "smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


class BrowserPool:
    """Browsers, each with several tabs; use it on one event loop.

    A tab is handed out by :meth:`open` and given back by :meth:`release`; it is new each time. A browser whose memory
    exceeds the limit gets no new tabs and ends with its last one. One that has ended, or cannot even close a tab, is
    replaced, and :attr:`counts` says how often (``browser_lost``), beside what pages tried (``dialog``, ``popup``,
    ``download``, ``navigation``, ``hang``) and ``launched``, ``opened``.

    Args:
        tabs_per_browser: How many tabs one browser process holds at most.
        max_tabs: How many tabs there may be at once.
        memory_limit_mib: Memory of one browser with all its processes, above which it is replaced.
        timeout_seconds: How long one operation of a page may take.
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

    async def open(self, allowed: Sequence[str], viewport: tuple[int, int] = VIEWPORT) -> Tab:
        """Return a new tab that may show addresses with one of these starts, and reach nothing else.

        Args:
            allowed: Starts of addresses, such as ``file:///srv/pages/`` or ``http://127.0.0.1:8000/``.
            viewport: Width and height of the page in pixels.

        Raises:
            BrowserFault: There are too many tabs already, or no browser can be started.
        """
        for attempt in range(3):
            host = await self._host()
            try:
                return await asyncio.wait_for(self._open(host, allowed, viewport), self.timeout_seconds * 2)
            except Exception as error:  # whatever a dying browser does: another one gets the tab
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
        return sum(host.memory_mib() for host in self.browsers)

    # Browsers.

    async def _host(self) -> Chromium:
        """Return a browser with room for one more tab, counted as opening there."""
        async with self._lock:
            for host in list(self.browsers):
                if not host.browser.is_connected():
                    await self._lose(host)
            if sum(host.load for host in self.browsers) >= self.max_tabs:
                raise BrowserFault(f"{self.max_tabs} tabs are open already: close environments, or raise max_tabs")
            free = [host for host in self.browsers if not host.is_retired and host.load < self.tabs_per_browser]
            host = free[0] if free else await self._launch()
            host.opening += 1
            return host

    async def _launch(self) -> Chromium:
        for attempt in range(2):
            try:
                browser = await asyncio.wait_for(self._start(), _START_SECONDS)
                session = await browser.new_browser_cdp_session()
                told = await asyncio.wait_for(session.send("SystemInfo.getProcessInfo"), self.timeout_seconds)
                break
            except Exception as error:  # the driver may have died: a new one is started, once
                self._driver = None
                if attempt:
                    raise BrowserFault(f"{self.executable} does not start: {error}") from error
        process = next(each["id"] for each in told["processInfo"] if each["type"] == "browser")
        host = Chromium(browser, process)
        self.browsers.append(host)
        self.counts["launched"] += 1
        return host

    async def _start(self) -> Browser:
        from playwright.async_api import async_playwright

        if self._driver is None:
            self._driver = await async_playwright().start()
        flags = [*FLAGS, "--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else list(FLAGS)
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
        is_local = all(start.startswith("file:") for start in allowed)
        context = await host.browser.new_context(
            viewport={"width": viewport[0], "height": viewport[1]},
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            reduced_motion="reduce",
            accept_downloads=False,
            service_workers="block",
            offline=is_local,
        )
        await context.add_init_script(SCRIPT)
        if not is_local:
            await _block_others(context, allowed)
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        tab = Tab(context, page, session, allowed, self.timeout_seconds, self.counts)
        host.tabs.add(tab)
        self.counts["opened"] += 1
        return tab


async def _block_others(context: BrowserContext, allowed: Sequence[str]) -> None:
    """Let a context ask for nothing but what starts so."""
    starts = "|".join(re.escape(start) for start in (*allowed, "data:", "blob:"))

    async def refuse(route: Route) -> None:
        await route.abort("blockedbyclient")

    await context.route(re.compile(rf"^(?!{starts})"), refuse)


class BrowserThread:
    """The event loop, in a thread of its own, that a pool of browsers runs on.

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


_shared: BrowserThread | None = None
_guard = threading.Lock()


def shared_pool() -> BrowserThread:
    """Return the pool of this process, started on first use and closed when the interpreter ends.

    Raises:
        MissingExtra: Playwright or a browser is missing.
    """
    global _shared
    with _guard:
        if _shared is None or _shared.process != os.getpid():
            _shared = BrowserThread()
            atexit.register(_shared.stop)
        return _shared


def close_shared_pool() -> None:
    """Close the pool of this process, if there is one; the next use starts a new one."""
    global _shared
    with _guard:
        held, _shared = _shared, None
    if held is not None:
        held.stop()
