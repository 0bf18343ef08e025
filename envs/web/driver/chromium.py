"""Finding Chromium, and one running browser process: what is in it, what it uses, how it is ended."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
from typing import TYPE_CHECKING

from turngym.arithmetic import float_sum
from turngym.envs.web.driver.tab import Tab
from turngym.errors import MissingExtra, missing_extra
from turngym.system.processes import descendants, has_ended, own_memory_mib

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

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
    "--disable-partial-raster",  # an image must not depend on what was painted again since the last one
)


def find_browser(feature: str) -> str:
    """Return the path of a Chromium: the variable ``TURNGYM_CHROMIUM``, else the first found on the PATH.

    Args:
        feature: Component that needs a browser, for the error message.

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
    if importlib.util.find_spec("playwright") is None:
        raise missing_extra(feature, "playwright", "web")


class Chromium:
    """A running browser process and the tabs in it.

    Args:
        browser: Playwright's handle.
        process: Its process id.
        session: A CDP session to it.
        is_steered: Whether its pages draw only when told to.
    """

    def __init__(self, browser: Browser, process: int, session: CDPSession, *, is_steered: bool = False) -> None:
        self.browser = browser
        self.session = session
        self.is_steered = is_steered
        self.process = process
        self.tabs: set[Tab] = set()
        self.opening = 0
        self.brush = asyncio.Lock()
        """Held while a page is drawn that is told to."""
        self.naming = asyncio.Lock()
        """Held while a context is made and then recognised."""
        self.is_retired = False
        """True if no new tab is opened in it."""

    @property
    def load(self) -> int:
        """Number of tabs, open or opening."""
        return len(self.tabs) + self.opening

    def is_alive(self) -> bool:
        """Return whether the process runs; what Playwright knows of it may lag behind."""
        return self.browser.is_connected() and not has_ended(self.process)

    def memory_mib(self) -> float:
        """Return the memory of the browser and all its processes, shared pages counted once each (PSS)."""
        return float_sum(map(own_memory_mib, descendants(self.process)))

    def kill(self) -> None:
        """End the process and its children now."""
        for process in reversed(descendants(self.process)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
