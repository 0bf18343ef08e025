"""A site in a real browser: the same pages, served on the loopback, read back from what the browser holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from turngym.envs.web.driver.keeper import TabKeeper
from turngym.envs.web.driver.tab import Tab
from turngym.envs.website.actions import Move
from turngym.envs.website.page import OFF, ON, Form, Page, Piece
from turngym.envs.website.server import SiteServer, Slot, shared_server
from turngym.envs.website.session import WebSiteSession, target_of
from turngym.envs.website.site import Site, address, parted
from turngym.envs.website.store import Store

VIEWPORT = 800, 640
SCRIPT = (Path(__file__).parent / "data" / "site.js").read_text("utf8").strip().removesuffix(";")


class LiveTab(TabKeeper):
    """The tab of one environment in a real browser.

    Args:
        store: The database of the site.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(VIEWPORT)
        self.is_steered = False  # nothing is drawn for images, so a page may draw when it likes
        self._store = store
        self._server: SiteServer | None = None
        self._slot: Slot | None = None
        self._base = ""

    # From other threads and loops.

    def enter(self, site: Site) -> None:
        """Show another site from now on."""
        server = shared_server()
        if self._slot is None or server is not self._server:
            self.shut()
            self._server, self._slot = server, Slot(site, self._store)
            self._base = server.add(self._slot)
        self._slot.site = site

    def open(self, path: str) -> Page:
        """Return the page at a path."""
        return self.run(self.start(path))

    def perform(self, move: Move, session: WebSiteSession) -> Page:
        """Make a move, and return the page that it leads to."""
        return self.run(self.play(move, session))

    def show(self, session: WebSiteSession) -> Page:
        """Return the page that a session is at, with what was entered there."""
        return self.run(self._show(session))

    def shut(self) -> None:
        """Close the tab, from any thread, and the way to the site."""
        super().shut()
        self._leave()

    def let_go(self) -> None:
        """Close the tab and the site in the background; for an environment that was not closed."""
        super().let_go()
        self._leave()

    def _leave(self) -> None:
        if self._server is not None:
            self._server.remove(self._base)
        self._server = self._slot = None

    # Where the browsers are.

    async def start(self, path: str) -> Page:
        """Start at a path."""

        async def begin() -> Page:
            tab = await self._living(is_reset=True)
            tab.resets += 1
            return await self._goto(tab, path)

        return await self.surely(begin)

    async def play(self, move: Move, session: WebSiteSession) -> Page:
        """Make a move; where the browser ends on the way, another one continues from there."""
        slot = self._slot
        posts = slot.posts if slot else 0

        async def do() -> Page:
            if self._tab is None:
                await self._restore(session)
            return await self._play(await self._living(), move, session)

        async def again() -> Page:
            if slot is not None and slot.posts > posts:  # the site has made the change; it must not be made twice
                return await self._goto(await self._living(), slot.target)
            return await do()

        return await self.surely(do, again)

    async def _living(self, *, is_reset: bool = False) -> Tab:
        return await self.open_tab([f"{self._base}/"], is_reset=is_reset)

    async def _show(self, session: WebSiteSession) -> Page:
        return await self.surely(lambda: self._restore(session))

    async def _restore(self, session: WebSiteSession) -> Page:
        """Bring the tab to where a session is."""
        tab = await self._living()
        page = await self._goto(tab, session.history[-1])
        pieces = page.pieces
        for number, value in session.entered.items():
            if 1 <= number <= len(pieces) and pieces[number - 1].is_entry:
                await self._enter(tab, pieces[number - 1], value)
        if session.focus:
            await _tool(tab, "focus", session.focus)
        return await self._read(tab)

    async def _play(self, tab: Tab, move: Move, session: WebSiteSession) -> Page:
        piece = move.piece
        if move.kind in ("open", "back"):
            return await self._goto(tab, target_of(move, session.page, session.history))
        if move.kind == "enter":
            await self._enter(tab, piece, move.text)
        elif move.kind == "focus":
            await (self._click(tab, piece.number) if piece.kind == "field" else _tool(tab, "focus", piece.number))
        elif move.kind == "send" and piece.kind == "field":
            await self._leaving(tab, lambda: tab.press("Enter"))
        else:
            await self._leaving(tab, lambda: self._click(tab, piece.number))
        tab.require_home()
        return await self._read(tab)

    async def _goto(self, tab: Tab, path: str) -> Page:
        await tab.goto(self._base + path)
        tab.require_home()
        return await self._read(tab)

    async def _leaving(self, tab: Tab, do: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Do what leads to another page, and wait until that is there."""

        async def go() -> None:
            async with tab.page.expect_navigation(wait_until="load"):
                await do()

        await tab.limited(go(), "going to the next page")

    async def _click(self, tab: Tab, number: int) -> None:
        await tab.click(*(await _tool(tab, "place", number)))

    async def _enter(self, tab: Tab, piece: Piece, value: str) -> None:
        if piece.kind == "select":
            await _tool(tab, "select", piece.number, value)
        elif piece.kind == "box":
            if piece.value != value:
                await self._click(tab, piece.number)
        else:
            await _tool(tab, "clear", piece.number)
            await (tab.insert(value) if value else tab.press("Delete"))

    async def _read(self, tab: Tab) -> Page:
        """Return what the browser shows."""
        told = await _tool(tab, "read")
        prefix = "/" + self._base.rpartition("/")[2]
        forms = [Form(path.removeprefix(prefix), method == "get") for path, method in told["forms"]]
        rows = [tuple([_piece(raw, prefix) for raw in row]) for row in told["rows"]]
        path = address(*parted(told["path"].removeprefix(prefix)))
        return Page(told["title"], tuple(rows), tuple(forms), path)


async def _tool(tab: Tab, name: str, *values: Any) -> Any:
    """Call one of the tools of ``data/site.js``."""
    return await tab.ask(f"{SCRIPT}.{name}({', '.join(json.dumps(value) for value in values)})")


def _piece(raw: dict[str, Any], prefix: str) -> Piece:
    """Return a piece from what the page's elements told."""
    href = address(*parted(raw["href"].removeprefix(prefix))) if "href" in raw else ""
    value = (ON if raw["checked"] else OFF) if "checked" in raw else raw.get("value", "")
    options = tuple(raw.get("options", ()))
    return Piece(raw["kind"], raw["label"], raw.get("number", 0), href, raw.get("form", -1), value, options)
