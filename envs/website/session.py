"""Where an agent is on a site: the page it sees, what it has entered there, where it came from."""

from __future__ import annotations

from typing import Any

from turngym.envs.website.actions import Move
from turngym.envs.website.page import Page
from turngym.envs.website.site import Site, address, without_note
from turngym.envs.website.store import Store

BLANK = Page("", ())


class WebSiteSession:
    """Content of a tab, independent of its driver.

    >>> from turngym.envs.website.page import PageMaker
    >>> session = WebSiteSession()
    >>> session.start(PageMaker("Memo", {}).done()._replace(path="/memos"))
    >>> session.history
    ['/memos']
    """

    def __init__(self) -> None:
        self.page = BLANK
        self.history: list[str] = []
        """Paths of the pages before, that of this page the last."""
        self.entered: dict[int, str] = {}
        """Number of a piece -> what was entered there since the page came."""
        self.focus = 0
        """Number of the field that has the caret; 0 for none."""
        self.seen: set[str] = set()
        """Paths of all pages looked at."""

    def start(self, page: Page) -> None:
        """Start at a page."""
        self.history, self.seen = [page.path], {without_note(page.path)}
        self._show(page)

    def arrive(self, move: Move, page: Page) -> None:
        """Take in what a move led to."""
        if move.kind in ("enter", "focus"):
            if move.kind == "enter":
                self.entered[move.piece.number] = move.text
            self.focus = move.piece.number if move.piece.kind == "field" else 0
            self.page = page
            return
        if move.kind == "back":
            self.history.pop()
        elif page.path != self.history[-1]:
            self.history.append(page.path)
        self.seen.add(without_note(page.path))
        self._show(page)

    def _show(self, page: Page) -> None:
        self.page, self.entered, self.focus = page, {}, 0

    def state(self) -> dict[str, Any]:
        """Return all of it but the page, as a value that JSON can hold."""
        entered = [[number, value] for number, value in sorted(self.entered.items())]
        return {"history": list(self.history), "entered": entered, "focus": self.focus, "seen": sorted(self.seen)}

    def load(self, state: dict[str, Any]) -> None:
        """Bring back what :meth:`state` returned; :meth:`resume` brings the page."""
        history, entered = (
            list(map(str, state["history"])),
            {int(number): str(value) for number, value in state["entered"]},
        )
        if not history or not all(path.startswith("/") for path in history) or not isinstance(state["focus"], int):
            raise ValueError(f"the session {state!r}")
        self.history, self.entered = history, entered
        self.focus, self.seen = state["focus"], set(map(str, state["seen"]))

    def resume(self, page: Page) -> None:
        """Take in the page that the last of the history shows.

        Raises:
            ValueError: What was entered does not fit it.
        """
        kinds = {piece.number: piece.kind for piece in page.pieces}
        if any(kinds.get(number, "text") in ("text", "link", "button") for number in self.entered):
            raise ValueError(f"what was entered on {page.path}: {self.entered!r}")
        if self.focus and kinds.get(self.focus) != "field":
            raise ValueError(f"the caret at {self.focus} on {page.path}")
        self.page = page


def target_of(move: Move, page: Page, history: list[str]) -> str:
    """Return the path that a move other than sending a form opens."""
    if move.kind == "follow":
        return move.piece.href
    return history[-2] if move.kind == "back" else move.text


class PlainTab:
    """A tab without a browser: pages come straight from the site.

    Args:
        store: The database of the site.
    """

    _site: Site

    def __init__(self, store: Store) -> None:
        self._store = store

    def enter(self, site: Site) -> None:
        """Show another site from now on."""
        self._site = site

    def open(self, path: str) -> Page:
        """Return the page at a path."""
        return self._site.get(self._store.database, path)

    def perform(self, move: Move, session: WebSiteSession) -> Page:
        """Make a move, and return the page that it leads to."""
        page = session.page
        if move.kind == "focus":
            return page
        if move.kind == "enter":
            return page.holding({move.piece.number: move.text})
        if move.kind != "send":
            return self.open(target_of(move, page, session.history))
        form, values = page.forms[move.piece.form], page.values_of(move.piece.form)
        if form.is_search:
            return self.open(address(form.action, values))
        return self.open(self._site.post(self._store.database, form.action, values))

    def show(self, session: WebSiteSession) -> Page:
        """Return the page that a session is at, with what was entered there."""
        return self.open(session.history[-1]).holding(session.entered)

    def shut(self) -> None:
        """Do nothing: there is nothing open."""
