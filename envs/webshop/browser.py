"""A customer in a real browser: the pages of the shop in a tab, clicked and read as documents."""

from __future__ import annotations

import json
from typing import NamedTuple

from turngym.envs.web.driver.keeper import TabKeeper
from turngym.envs.web.driver.tab import BrowserFault, Tab
from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.html import READ, START, TOUCH, address, read_address
from turngym.envs.webshop.pages import Move, View
from turngym.envs.webshop.server import Visit, shared_server


class Shown(NamedTuple):
    """Where the browser is.

    Args:
        view: The view, read from the address.
        text: The text, read from the document.
    """

    view: View
    text: str


class ShopTab(TabKeeper):
    """The tab behind one environment; see :class:`turngym.envs.web.driver.keeper.TabKeeper` for how it is used.

    A view is all there is to a page, so a tab that has been lost is replaced by one that opens the same view.

    Args:
        catalogue: The shop.
        is_repeated: Whether every page says what the customer wants, or only the first.
        viewport: Width and height.
        with_image: Whether every page is photographed.
    """

    def __init__(self, catalogue: Catalogue, is_repeated: bool, viewport: tuple[int, int], *, with_image: bool) -> None:
        super().__init__(viewport)
        self.with_image = with_image
        self._catalogue, self._is_repeated = catalogue, is_repeated
        self._start = ""
        self._at: tuple[str, View] | None = None
        self._shot = b""

    async def begin(self, customer: str) -> Shown:
        """Open the first page of an episode.

        Args:
            customer: Instruction of the customer.
        """

        async def opened() -> Shown:
            tab = await self._prepared(customer, is_reset=True)
            tab.resets += 1
            await tab.goto(f"{self._start}{START}")
            return await self._read(tab, customer)

        return await self.surely(opened)

    async def go(self, move: Move, at: View, customer: str) -> Shown:
        """Do what a customer does on a page.

        Args:
            move: Action, which the page must allow.
            at: Where the customer is.
            customer: Instruction of the customer.

        Raises:
            BrowserFault: The page broke, or does not show what is clicked.
        """

        async def gone() -> Shown:
            tab = await self._open(at, customer)
            self._at = None
            if move.is_search:
                await _touch(tab, "")
                await tab.insert(move.target)
            await _follow(tab, "search" if move.is_search else move.target)
            return await self._read(tab, customer)

        return await self.surely(gone)

    def picture(self, at: View, customer: str) -> bytes:
        """Return the page of a view as PNG, from any thread; where every page is photographed it is there already."""

        async def taken() -> bytes:
            tab = await self._open(at, customer)
            return self._shot if self.with_image else await tab.screenshot()

        return self._shot if self.with_image and self._at == (customer, at) else self.run(self.surely(taken))

    async def close(self) -> None:
        """Close the tab; the next use opens one."""
        self._at = None
        if self._start:
            shared_server().tell(self._start, None)
        await super().close()

    async def _prepared(self, customer: str, *, is_reset: bool) -> Tab:
        """Return a tab that may show this environment's pages."""
        server = shared_server()
        self._start = self._start or server.enter()
        tab = await self.open_tab([self._start], is_reset=is_reset)
        server.tell(self._start, Visit(self._catalogue, customer, self._is_repeated))
        return tab

    async def _open(self, at: View, customer: str) -> Tab:
        """Return a tab that shows a view."""
        tab = await self._prepared(customer, is_reset=False)
        if self._at == (customer, at):
            tab.require_home()
        else:
            await tab.goto(f"{self._start}{address(at)}")
            await self._read(tab, customer)
        return tab

    async def _read(self, tab: Tab, customer: str) -> Shown:
        tab.require_home()
        told = await tab.ask(READ)
        view = read_address(self._catalogue, str(told["url"]).removeprefix(self._start))
        if view is None:
            raise BrowserFault(f"the shop has no page {str(told['url'])[:200]}")
        if self.with_image:
            self._shot = await tab.screenshot()
        self._at = customer, view
        return Shown(view, str(told["text"]))


async def _touch(tab: Tab, target: str) -> None:
    if not await tab.ask(TOUCH % json.dumps(target)):
        raise BrowserFault(f"the page does not show {target[:80]!r}")


async def _follow(tab: Tab, target: str) -> None:
    """Click a link or a button, and wait until the page that it leads to has loaded."""

    async def followed() -> None:
        async with tab.page.expect_navigation(wait_until="load", timeout=0):
            await _touch(tab, target)

    await tab.limited(followed(), "following a link")
