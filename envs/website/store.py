"""State of a site: a small in-memory SQLite database, restored at every reset."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from turngym.storage.memory_database import MemoryDatabase

Cell: TypeAlias = str | int
Row: TypeAlias = tuple[Cell, ...]
"""The cells of one row; the first is its id."""
Schema: TypeAlias = Mapping[str, tuple[str, ...]]
"""Table -> its columns after the id."""
Change: TypeAlias = tuple[str, int, Row]
"""Table, id and new cells of a row; no cells where the row is gone."""
_PAGE_BYTES = 1024


@dataclass(frozen=True)
class World:
    """Initial content of a site in an episode.

    Args:
        name: Tells it from others of the same site.
        tables: Table -> its rows, by id.
        image: The same as the bytes of a database.
    """

    name: str
    tables: Mapping[str, tuple[Row, ...]]
    image: bytes


def make_world(name: str, schema: Schema, tables: Mapping[str, Iterable[Row]]) -> World:
    """Return a world with these rows.

    >>> make_world("w", {"note": ("text",)}, {"note": [(1, "milk")]}).tables
    {'note': ((1, 'milk'),)}
    """
    rows = {table: tuple(sorted(tables.get(table, ()))) for table in schema}
    database = MemoryDatabase()
    try:
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("BEGIN")
        for table, columns in schema.items():
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(columns)})")
            marks = ", ".join("?" * (len(columns) + 1))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
        database.execute("COMMIT")
        return World(name, rows, database.serialize())
    finally:
        database.close()


class Store:
    """The database of one slot.

    >>> store = Store()
    >>> store.reset(make_world("w", {"note": ("text",)}, {"note": [(1, "milk")]}))
    >>> _ = store.database.execute("INSERT INTO note VALUES (2, 'tea')")
    >>> store.changes()
    [('note', 2, (2, 'tea'))]
    """

    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self._world = World("", {}, b"")

    def reset(self, world: World) -> None:
        """Start with what a world holds.

        On its own connection: one that is kept would continue with what it knows of the tables before.
        """
        self.database.close()
        self.database = MemoryDatabase()
        self.database.deserialize(world.image)
        self._world = world

    def rows(self, table: str) -> list[Row]:
        """Return a table, by id."""
        return self.database.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()

    def changes(self) -> list[Change]:
        """Return what differs from the beginning, by table and id."""
        found: list[Change] = []
        for table, before in self._world.tables.items():
            now = self.rows(table)
            if tuple(now) == before:
                continue
            old, new = {int(row[0]): row for row in before}, {int(row[0]): row for row in now}
            for number in sorted(old.keys() | new.keys()):
                if old.get(number) != new.get(number):
                    found.append((table, number, new.get(number, ())))
        return found

    def apply(self, changes: Iterable[Change]) -> None:
        """Make changes that :meth:`changes` returned.

        Raises:
            ValueError: They do not fit the tables.
        """
        for table, number, row in changes:
            is_plain = all(isinstance(cell, str | int) and not isinstance(cell, bool) for cell in row)
            if table not in self._world.tables or not is_plain or (row and row[0] != number):
                raise ValueError(f"a change of {table!r} {number!r}")
            try:
                self.database.execute(f"DELETE FROM {table} WHERE id = ?", (number,))
                if row:
                    self.database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            except sqlite3.Error as error:
                raise ValueError(f"a change of {table!r} {number!r}: {error}") from error

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()
