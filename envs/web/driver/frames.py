"""Drawing a page when we say so, and not sixty times a second: sooner when an image is wanted, never otherwise.

Only the program chromium-headless-shell can do this, and all pages of such a browser must be of the kind; with any
other program the pool opens tabs that draw by themselves.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

T = TypeVar("T")

STEERED_FLAGS = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-image-animation-resync",
)
_GRACE_SECONDS = 0.004
_OPEN_SECONDS = 10.0
_STUCK_SECONDS, _ANSWER_SECONDS = 4.0, 1.0


class FrameStuck(TimeoutError):
    """The browser does not finish a frame of a page whose scripts run: a fault of the browser, not of the page."""


def can_be_steered(executable: str) -> bool:
    """Return whether a browser program draws when it is told to.

    >>> can_be_steered("/usr/bin/chromium-headless-shell"), can_be_steered("/usr/bin/chromium")
    (True, False)
    """
    return "headless" in os.path.basename(executable)


async def open_steered(session: CDPSession, context: BrowserContext, known: set[str]) -> Page:
    """Open a page in a new context that draws only when told to.

    Args:
        session: A CDP session to the browser.
        context: The context, without a page so far.
        known: The browser's contexts from before it was made.

    Raises:
        ValueError: The browser has made another context meanwhile.
    """
    (new,) = await contexts(session) - known
    async with context.expect_page(timeout=_OPEN_SECONDS * 1000) as opening:
        await session.send(
            "Target.createTarget",
            {"url": "about:blank", "browserContextId": new, "enableBeginFrameControl": True},
        )
    return await opening.value


async def contexts(session: CDPSession) -> set[str]:
    """Return the ids of a browser's contexts."""
    return set((await session.send("Target.getBrowserContexts"))["browserContextIds"])


class Frames:
    """The frames of a page that draws only when told to.

    Args:
        session: A CDP session to the page.
        brush: What all pages of the browser share: two frames at a time, even of two pages, and it crashes.
        limit_seconds: Time limit of a frame.
    """

    def __init__(self, session: CDPSession, brush: asyncio.Lock, limit_seconds: float) -> None:
        self._session = session
        self._brush = brush
        self._limit = limit_seconds

    async def draw(self, **options: Any) -> dict[str, Any]:
        """Draw one frame, after any that is being drawn, and return what the browser answers.

        Until a page whose frame does not end is closed, no other page of the browser is drawn.

        Raises:
            FrameStuck: The frame does not end although scripts of the page run: Chromium 156 sometimes loses one after
                a scroll on a busy machine, and nothing but closing the page ends it.
            TimeoutError: The page does not let itself be drawn.
        """
        await self._brush.acquire()
        drawing = asyncio.ensure_future(self._session.send("HeadlessExperimental.beginFrame", options))
        drawing.add_done_callback(self._drawn)  # also where nobody waits for it any more
        await asyncio.wait({drawing}, timeout=min(_STUCK_SECONDS, self._limit))
        if not drawing.done() and await self._do_scripts_run() and not drawing.done():
            raise FrameStuck
        await asyncio.wait({drawing}, timeout=max(0.0, self._limit - _STUCK_SECONDS))
        if not drawing.done():
            raise TimeoutError
        return drawing.result()

    async def _do_scripts_run(self) -> bool:
        asking = asyncio.ensure_future(self._session.send("Runtime.evaluate", {"expression": "1"}))
        asking.add_done_callback(lambda _: asking.cancelled() or asking.exception())
        await asyncio.wait({asking}, timeout=_ANSWER_SECONDS)
        return asking.done()

    def _drawn(self, drawing: asyncio.Future[dict[str, Any]]) -> None:
        self._brush.release()
        if not drawing.cancelled():
            drawing.exception()  # whoever waits has it, too

    async def picture(self) -> str:
        """Draw a frame and return it as PNG in base64."""
        while True:
            answer = await self.draw(screenshot={"format": "png", "optimizeForSpeed": True})
            if "screenshotData" in answer:
                return str(answer["screenshotData"])

    async def along(self, work: Awaitable[T], patience: float) -> T:
        """Await something that may wait for frames, and draw them until it is done.

        A frame on its way is waited for even if the work is done first: under load, a page that got its next input
        while a frame was drawn never ended the frame, and no other page of the browser was drawn any more.

        Args:
            work: Awaitable.
            patience: Seconds that it is given before the first frame.

        Raises:
            TimeoutError: The page does not let itself be drawn.
        """
        from playwright.async_api import Error

        doing = asyncio.ensure_future(work)
        try:
            if patience:
                await asyncio.wait({doing}, timeout=patience)
            while not doing.done():
                try:
                    await self.draw()
                except Error:
                    break  # the work meets the same
                await asyncio.wait({doing}, timeout=_GRACE_SECONDS)
            return await doing
        finally:
            doing.cancel()
