"""One page in its own context: what may be done to it, with a limit on how long anything may take."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from turngym.envs.web.driver.frames import Frames, FrameStuck
from turngym.errors import TurngymError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Frame, Page

T = TypeVar("T")
SCRIPT = (Path(__file__).parent / "data" / "page.js").read_text("utf8")
CLOSE_SECONDS = 3.0
_PATIENCE = 0.05
_MOST_FRAMES = 100
_LONGEST_QUESTION = 200
_KEYS = {"ctrl": "Control", "control": "Control", "alt": "Alt", "shift": "Shift", "meta": "Meta"}


class BrowserFault(TurngymError, RuntimeError):
    """A page crashed, hung or left the addresses that it may show."""


class BrowserGone(BrowserFault):
    """The browser has ended or lost a frame; its pages are not at fault, and may be reopened elsewhere."""


class Tab:
    """A page, alone in its context: no cookie, storage or window is shared with another tab.

    What a page may try is stopped and counted in :attr:`events`: ``dialog`` (dismissed, or
    ``accepted`` where :attr:`answer` is set), ``popup`` and ``download``
    (closed, cancelled). A page that crashes, hangs or leaves :attr:`allowed` raises :class:`BrowserFault` from the
    method that meets it, and the tab can no longer be used.

    Args:
        context: The browser context.
        page: Its page.
        session: A CDP session to the page.
        allowed: Starts of the addresses that the page may show.
        timeout_seconds: Time limit of one operation.
        total: A counter of all tabs, where events are counted too.
        is_browser_alive: Tells whether the browser process still runs.
        frames: Draws the page, where it does not draw by itself.
    """

    def __init__(
        self,
        context: BrowserContext,
        page: Page,
        session: CDPSession,
        allowed: Sequence[str],
        timeout_seconds: float,
        total: Counter[str],
        is_browser_alive: Callable[[], bool],
        frames: Frames | None = None,
    ) -> None:
        self.context = context
        self.page = page
        self.allowed = tuple(allowed)
        self.events: Counter[str] = Counter()
        self.fault = ""
        """Why the tab can no longer be used; empty while it can."""
        self.resets = 0
        self.answer: str | None = None
        """Text with which dialogs are accepted; None to dismiss them."""
        self.asked = ""
        """Text of the latest dialog."""
        self._session = session
        self._timeout = timeout_seconds
        self._total = total
        self._is_browser_alive = is_browser_alive
        self._frames = frames
        self._left = ""
        self._gone = asyncio.Event()
        self._entry = 0
        """Number of history entries that the page started with."""
        page.on("dialog", self._on_dialog)
        page.on("download", self._on_download)
        page.on("crash", lambda _: self._die("the page crashed"))
        page.on("close", lambda _: self._die("the page was closed"))
        page.on("framenavigated", self._on_navigated)
        context.on("page", self._on_popup)

    # What pages try.

    def count(self, kind: str) -> None:
        """Count an event of this tab."""
        self.events[kind] += 1
        self._total[kind] += 1

    def _die(self, why: str) -> None:
        self.fault = self.fault or why
        self._gone.set()

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.count("dialog" if self.answer is None else "accepted")
        self.asked = " ".join(dialog.message.split())[:_LONGEST_QUESTION]
        with contextlib.suppress(Exception):  # it may be gone with its page
            await (dialog.dismiss() if self.answer is None else dialog.accept(self.answer))

    async def _on_download(self, download: Download) -> None:
        self.count("download")
        with contextlib.suppress(Exception):  # contexts refuse downloads: this one is over already
            await download.cancel()

    async def _on_popup(self, page: Page) -> None:
        if page is self.page:
            return
        self.count("popup")
        with contextlib.suppress(Exception):  # it may have closed itself
            await page.close(run_before_unload=False)

    def _on_navigated(self, frame: Frame) -> None:
        is_whole = frame.parent_frame is None  # frames within it are kept from other servers, but not from files
        if (is_whole or frame.url.startswith("file:")) and not self.may_show(frame.url):
            self._left = self._left or frame.url

    def may_show(self, url: str) -> bool:
        """Return whether an address is one of those that the page may show."""
        return url == "about:blank" or url.startswith(self.allowed)

    # Limits.

    async def limited(
        self, work: Awaitable[T], what: str, *, frames_after: float | None = None, is_frame: bool = False
    ) -> T:
        """Await something that the browser does.

        Args:
            work: Awaitable.
            what: Name for the error message.
            frames_after: Seconds after which frames are drawn for it to continue; None if it needs none.
            is_frame: Whether it draws the page itself.

        Raises:
            BrowserFault: It takes too long, or the page is gone.
            BrowserGone: The browser is gone.
        """
        from playwright.async_api import Error

        if self.fault:
            asyncio.ensure_future(work).cancel()
            raise self._error(self.fault)
        timeout = self._timeout
        if self._frames and (is_frame or frames_after is not None):
            timeout = 2 * timeout + CLOSE_SECONDS  # first a neighbour that hangs may have to be closed
            if frames_after is not None:
                work = self._frames.along(work, frames_after)
        doing = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone.wait())
        waiting: set[asyncio.Future[Any]] = {doing, gone}
        try:
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
        except FrameStuck:
            self.fault = self.fault or f"the browser does not finish a frame: {what}"
            self.count("stuck frame")
            raise BrowserGone(self.fault) from None
        except TimeoutError:
            pass
        except Error as error:
            self.fault = self.fault or f"{what} failed: {str(error).splitlines()[0]}"
            raise self._error(self.fault) from error
        finally:
            for each in waiting:
                if not each.done():
                    each.cancel()
        if not self.fault:
            self.fault = f"the page does not answer: {what} took more than {self._timeout:g} s"
            self.count("hang")
        raise self._error(self.fault)

    def _error(self, why: str) -> BrowserFault:
        if not self._is_browser_alive():
            return BrowserGone("the browser process has ended")
        return BrowserFault(why)

    def require_home(self) -> None:
        """Raise if the page went where it may not.

        Raises:
            BrowserFault: It did; the address is named.
        """
        if self._left:
            self.fault = self.fault or f"the page went to {self._left[:200]}"
            self.count("navigation")
            raise self._error(self.fault)

    async def send(self, method: str, *, frames_after: float | None = None, **values: Any) -> dict[str, Any]:
        """Send one command of the Chrome DevTools Protocol; see :meth:`limited` for the option."""
        work = self._session.send(method, values)
        answer: dict[str, Any] = await self.limited(work, method, frames_after=frames_after)
        return answer

    async def ask(self, expression: str, *, frames_after: float | None = None) -> Any:
        """Return the value of a trusted expression, awaiting promises; never contains text of the agent."""
        values = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = await self.send("Runtime.evaluate", frames_after=frames_after, **values)
        if "exceptionDetails" in answer:
            shown = answer["exceptionDetails"].get("exception", {}).get("description") or answer["exceptionDetails"]
            self.fault = f"the page's script failed: {str(shown).splitlines()[0]}"
            raise self._error(self.fault)
        return answer["result"].get("value")

    async def tool(self, name: str, *values: Any) -> Any:
        """Call one of the tools of ``data/page.js``."""
        call = f"__turngym.{name}({', '.join(json.dumps(value) for value in values)})"
        return await self.ask(call, frames_after=0.0 if name == "frame" else None)

    # What may be done.

    async def goto(self, url: str) -> None:
        """Open an address, which must be an allowed one."""
        self._left = ""
        if not self.may_show(url):
            raise BrowserFault(f"{url} is none of the addresses that this tab may show")
        await self.limited(
            self.page.goto(url, wait_until="load", timeout=self._timeout * 1000),
            f"opening {url}",
            frames_after=_PATIENCE,
        )
        await self._show()
        history = await self.send("Page.getNavigationHistory")
        self._entry = history["currentIndex"]

    async def _show(self) -> None:
        """Draw a page that has just been loaded: until then the browser lets no click through to it."""
        if self._frames:
            await self.limited(self._frames.draw(), "drawing the page", is_frame=True)

    async def back(self) -> bool:
        """Go back one entry of the history; returns False where that would leave what was opened first."""
        history = await self.send("Page.getNavigationHistory")
        if history["currentIndex"] <= self._entry:
            return False
        await self.limited(
            self.page.go_back(wait_until="load", timeout=self._timeout * 1000), "going back", frames_after=_PATIENCE
        )
        await self._show()
        return True

    async def mouse(
        self, kind: str, x: float, y: float, held: bool = False, clicks: int = 0, *, is_last: bool = True
    ) -> None:
        """Send one event of the mouse: ``mouseMoved``, ``mousePressed`` or ``mouseReleased``.

        A page is told of a move with the next frame, or before the next button event, unless the move ``is_last``.
        """
        button = "none" if kind == "mouseMoved" and not held else "left"
        values = {
            "x": x,
            "y": y,
            "button": button,
            "buttons": int(held or kind == "mousePressed"),
            "clickCount": clicks,
        }
        frames_after = 0.0 if kind == "mouseMoved" and is_last else None
        await self.send("Input.dispatchMouseEvent", frames_after=frames_after, type=kind, **values)

    async def click(self, x: float, y: float, clicks: int = 1) -> None:
        """Move the mouse to a point and click there, the events in one go."""
        await asyncio.gather(
            self.mouse("mouseMoved", x, y, is_last=False),
            *(
                self.mouse(kind, x, y, clicks=n + 1)
                for n in range(clicks)
                for kind in ("mousePressed", "mouseReleased")
            ),
        )

    async def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 5) -> None:
        """Press at one point, move to another in steps, and release there."""
        (x, y), (to_x, to_y) = start, end
        await self.mouse("mouseMoved", x, y)
        await self.mouse("mousePressed", x, y, clicks=1)
        for step in range(1, steps + 1):
            share = step / steps
            await self.mouse("mouseMoved", x + (to_x - x) * share, y + (to_y - y) * share, held=True)
        await self.mouse("mouseReleased", to_x, to_y, clicks=1)

    async def insert(self, text: str) -> None:
        """Put text in at the caret, as an input method does."""
        await self.send("Input.insertText", text=text)

    async def press(self, key: str) -> bool:
        """Press a key or a chord such as ``Control+a``; returns False if there is no such key."""
        from playwright.async_api import Error

        parts = key.split("+") if len(key) > 1 else [key]
        chord = "+".join(_KEYS.get(part.lower(), part) for part in parts)
        try:
            await asyncio.wait_for(self.page.keyboard.press(chord), self._timeout)
        except Error as error:
            if "Unknown key" in str(error):
                return False
            raise self._error(f"pressing {chord} failed: {error}") from error
        except TimeoutError as error:
            self.fault = f"the page does not answer: pressing {chord} took more than {self._timeout:g} s"
            self.count("hang")
            raise self._error(self.fault) from error
        return True

    async def screenshot(self, *, is_marked: bool = False) -> bytes:
        """Return the visible part of the page as PNG.

        Args:
            is_marked: Whether the page's tool ``mark`` was called after all changes to be seen.
        """
        if self._frames:
            return base64.b64decode(await self._painted(self._frames, is_marked=is_marked))
        answer = await self.send("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        return base64.b64decode(answer["data"])

    async def _painted(self, frames: Frames, *, is_marked: bool) -> str:
        """Draw frames until one comes after all that has changed so far: one on its own may come too soon for that."""
        for _ in range(_MOST_FRAMES):
            if not is_marked:  # or the mark has gone with the page that bore it
                await self.tool("mark")
            is_marked = False
            drawn = await self.limited(frames.picture(), "drawing the page", is_frame=True)
            if await self.tool("isPainted"):
                return drawn
        self.fault = self.fault or f"the page is not painted in {_MOST_FRAMES} frames"
        raise self._error(self.fault)

    async def close(self) -> bool:
        """Close the context; returns False if the browser does not do so in time."""
        self._gone.set()
        self.fault = self.fault or "the tab was closed"
        closing = asyncio.ensure_future(self.context.close())
        done, _ = await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if not done:
            closing.cancel()
            return False
        with contextlib.suppress(Exception):  # gone already: that is as good
            closing.result()
        return True
