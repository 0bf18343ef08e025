"""Tables in memory: records by id, what changed in them, and the goal that a change makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from turngym.envs.website.goal import Wanted
from turngym.envs.website.store import Cell, Change, World

Record: TypeAlias = Mapping[str, Cell]
"""Column -> cell of one row, ``id`` first; never changed in place."""
Rows: TypeAlias = Mapping[str, Mapping[int, Record]]
"""Table -> id -> record."""


class Tables:
    """Records that can be replaced, added and removed; the rows given to it stay as they are.

    Args:
        rows: Initial content.

    >>> tables = Tables({"note": {1: {"id": 1, "text": "milk"}}})
    >>> tables.set("note", 1, text="tea")
    {'id': 1, 'text': 'tea'}
    >>> tables.changes()
    [('note', 1, (1, 'tea'))]
    """

    def __init__(self, rows: Rows) -> None:
        self._start = rows
        self._now = {table: dict(records) for table, records in rows.items()}
        self._last: dict[str, int] = {}

    def get(self, table: str, number: Cell) -> Record | None:
        """Return a record, None if there is none."""
        return self._now[table].get(number) if isinstance(number, int) else None

    def where(self, table: str, **cells: Cell) -> list[Record]:
        """Return the records with these cells, in the order of the table."""
        found = list(self._now[table].values())
        for name, value in cells.items():
            found = [each for each in found if each[name] == value]
        return found

    def put(self, table: str, record: Record) -> None:
        """Add a record, or replace the one with its id."""
        self._now[table][int(record["id"])] = record

    def set(self, table: str, number: int, **cells: Cell) -> Record:
        """Change cells of a record and return it."""
        self._now[table][number] = record = {**self._now[table][number], **cells}
        return record

    def add(self, table: str, **cells: Cell) -> Record:
        """Add a record and return it; one that was removed has its id again, any other an id that none had."""
        if table in self._last:
            for number, old in self._start[table].items():
                if number not in self._now[table] and {"id": number, **cells} == old:
                    self._now[table][number] = old
                    return old
        number = max(self._last.get(table, 0), max(self._now[table], default=0)) + 1
        self._now[table][number] = record = {"id": number, **cells}
        return record

    def remove(self, table: str, number: int) -> None:
        """Remove a record; no other record has its id later."""
        self._last[table] = max(self._last.get(table, 0), *self._now[table])
        del self._now[table][number]

    def changes(self) -> list[Change]:
        """Return what differs from the beginning, by table and id; the row is empty where a record is gone."""
        found: list[Change] = []
        for table, now in self._now.items():
            before = self._start[table]
            for number, record in now.items():
                old = before.get(number)
                if old is not record and old != record:
                    found.append((table, number, tuple(record.values())))
            if table in self._last:
                found += [(table, number, ()) for number in before if number not in now]
        return found


def world_of(rows: Rows) -> World:
    """Return the rows as the judge of goals reads them."""
    return World("", {table: tuple(tuple(each.values()) for each in rows[table].values()) for table in rows}, b"")


def wants_of(rows: Rows, schema: Mapping[str, tuple[str, ...]], changes: list[Change]) -> tuple[Wanted, ...]:
    """Return the conditions that hold after some changes.

    One per changed cell, one per record that is gone, and one per new record, whatever its id.
    """
    found: list[Wanted] = []
    for table, number, row in changes:
        if not row:
            found.append(Wanted(table, number, {}))
            continue
        before, now = rows[table].get(number), dict(zip(schema[table], row[1:], strict=True))
        if before is None:
            found.append(Wanted(table, 0, now))
            continue
        found += [Wanted(table, number, {name: value}) for name, value in now.items() if before[name] != value]
    return tuple(found)
