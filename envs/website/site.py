"""Definition of a site: tables, pages made from them, forms that change them, goals."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlencode

import numpy as np

from turngym.envs.website.page import Page, PageMaker, Piece, link, one_line
from turngym.envs.website.store import Row, Schema

NOTE = "note"
"""Query parameter that tells a page how the form before it went."""
PAGE_SIZE = 6
_NUMBER = re.compile(r"\d{1,9}")
_MOST_PARAMETERS = 20


class Request(NamedTuple):
    """Context of a page or change request.

    Args:
        numbers: The numbers in the path.
        values: The query, or what a form sent.
    """

    numbers: tuple[int, ...]
    values: Mapping[str, str]

    def __call__(self, name: str, default: str = "") -> str:
        """Return a value."""
        return self.values.get(name, default)


Tables: TypeAlias = dict[str, list[Row]]
Get: TypeAlias = Callable[[sqlite3.Connection, Request], PageMaker | None]
"""Makes a page; None if there is nothing of that number."""
Post: TypeAlias = Callable[[sqlite3.Connection, Request], str | None]
"""Makes a change, and returns the path to continue to; None if there is nothing of that number."""


@dataclass(frozen=True)
class Site:
    """An application of several pages.

    Args:
        name: Its name.
        home: The path that an episode starts at.
        nav: Links on top of every page: label -> path.
        schema: Its tables.
        gets: Path, with ``#`` for a number -> what makes the page.
        posts: Path -> what makes the change.
        notes: Code -> what the page after a form says.
        build: Makes the content of a world.
        way: The paths that lead to a path, itself the last; a search among them stands with its query.
    """

    name: str
    home: str
    nav: Mapping[str, str]
    schema: Schema
    gets: Mapping[str, Get]
    posts: Mapping[str, Post]
    notes: Mapping[str, str]
    build: Callable[[np.random.Generator], Tables]
    way: Callable[[sqlite3.Connection, str], tuple[str, ...]]

    def get(self, database: sqlite3.Connection, path: str) -> Page:
        """Return the page at a path, which may be anything."""
        bare, values = parted(path)
        route, numbers = _route(bare)
        handler = self.gets.get(route)
        maker = handler(database, Request(numbers, values)) if handler else None
        if maker is None:
            maker = PageMaker("Not found", self.nav)
            maker.row("There is nothing here.")
        page = maker.done()
        note = self.notes.get(values.get(NOTE, ""))
        if note:
            page = page._replace(rows=(page.rows[0], (Piece("text", note),), *page.rows[1:]))
        return page._replace(path=path)

    def post(self, database: sqlite3.Connection, path: str, values: Mapping[str, str]) -> str:
        """Make the change that a form asks for, and return the path to continue to."""
        route, numbers = _route(parted(path)[0])
        handler = self.posts.get(route)
        clean = {name: one_line(value) for name, value in values.items()}
        return (handler(database, Request(numbers, clean)) if handler else None) or path


def parted(path: str) -> tuple[str, dict[str, str]]:
    """Return a path without its query, and the query.

    >>> parted("/mail?q=two+words&page=2")
    ('/mail', {'q': 'two words', 'page': '2'})
    """
    bare, mark, query = path.partition("?")
    if not mark:
        return bare, {}
    try:
        return bare, dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="replace"))
    except ValueError:
        return bare, {}


def address(path: str, values: Mapping[str, Any]) -> str:
    """Return a path with a query.

    >>> address("/mail", {"q": "two words"})
    '/mail?q=two+words'
    """
    return f"{path}?{urlencode(values)}" if values else path


def noted(path: str, code: str) -> str:
    """Return a path whose page says how the form before it went."""
    return f"{path}?{NOTE}={code}"


def without_note(path: str) -> str:
    """Return a path without what it says of the form before.

    >>> without_note("/mail/3?note=sent")
    '/mail/3'
    """
    if f"{NOTE}=" not in path:
        return path
    bare, values = parted(path)
    values.pop(NOTE, None)
    return address(bare, values)


def _route(path: str) -> tuple[str, tuple[int, ...]]:
    parts, numbers = [], []
    for part in path.split("/"):
        if _NUMBER.fullmatch(part):
            parts.append("#")
            numbers.append(int(part))
        else:
            parts.append(part)
    return "/".join(parts), tuple(numbers)


def steps_to(path: str) -> tuple[str, ...]:
    """Return the paths that lead to one, from the top.

    >>> steps_to("/mail/3/reply")
    ('/mail', '/mail/3', '/mail/3/reply')
    """
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(2, len(parts) + 1))


def one(database: sqlite3.Connection, query: str, *values: Any) -> Any:
    """Return the first row of a query, None if there is none."""
    return database.execute(query, values).fetchone()


def rows(database: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """Return all rows of a query."""
    return database.execute(query, values).fetchall()


def column(database: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """Return the first cell of every row of a query."""
    return [row[0] for row in database.execute(query, values)]


def insert(database: sqlite3.Connection, table: str, *cells: Any) -> int:
    """Add a row with the next id, and return that."""
    number = int(one(database, f"SELECT coalesce(max(id), 0) + 1 FROM {table}")[0])
    database.execute(f"INSERT INTO {table} VALUES (?{', ?' * len(cells)})", (number, *cells))
    return number


def page_of(request: Request) -> int:
    """Return which page of a list is asked for, from 1."""
    text = request("page", "1")
    return max(1, int(text)) if _NUMBER.fullmatch(text) else 1


def turn_pages(maker: PageMaker, path: str, request: Request, total: int) -> None:
    """Add the row that leads to the other pages of a list, where it has several."""
    last = max(1, -(-total // PAGE_SIZE))
    number = page_of(request)
    if last == 1:
        return
    kept = {name: value for name, value in request.values.items() if name not in ("page", NOTE)}
    pieces: list[Piece | str] = [f"page {number} of {last}"]
    if number > 1:
        pieces.append(link("previous", address(path, kept | {"page": str(number - 1)} if number > 2 else kept)))
    if number < last:
        pieces.append(link("next", address(path, kept | {"page": str(number + 1)})))
    maker.row(*pieces)


def pages_of(path: str, total: int) -> list[str]:
    """Return the paths of all pages of a list.

    >>> pages_of("/mail", 7)
    ['/mail', '/mail?page=2']
    """
    return [path, *(address(path, {"page": str(number)}) for number in range(2, -(-total // PAGE_SIZE) + 1))]


def on_page(items: Sequence[Any], request: Request) -> Sequence[Any]:
    """Return the part of a list that is on the page asked for."""
    first = (page_of(request) - 1) * PAGE_SIZE
    return items[first : first + PAGE_SIZE]
