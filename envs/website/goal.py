"""Goals: conditions on the tables, progress towards them, and how to reach them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from turngym.envs.website.page import ON, Page, Piece
from turngym.envs.website.site import Site, parted, without_note
from turngym.envs.website.store import Cell, Change, Row, Schema, World


class New(NamedTuple):
    """Stands for the id of a row that is to be added.

    Args:
        table: Its table.
    """

    table: str


class Wanted(NamedTuple):
    """One thing that must have become so.

    Args:
        table: The table.
        id: Which row; 0 for a new one.
        cells: Column -> value; empty where the row must be gone.
    """

    table: str
    id: int
    cells: Mapping[str, Cell | New]


class Task(NamedTuple):
    """One form to send, or one page to look at.

    Args:
        path: The page.
        form: The form's action; empty where looking is all.
        fields: Name -> value of what to enter.
        wants: Effect.
        via: Pages to come by, where the site's usual way is not meant.
    """

    path: str
    form: str = ""
    fields: Mapping[str, str] = {}
    wants: tuple[Wanted, ...] = ()
    via: tuple[str, ...] = ()


class Goal(NamedTuple):
    """Goal.

    Args:
        text: In words.
        tasks: How it is done.
    """

    text: str
    tasks: tuple[Task, ...]

    @property
    def wants(self) -> tuple[Wanted, ...]:
        """All that must have become so."""
        return tuple([wanted for task in self.tasks for wanted in task.wants])


def look(path: str, *via: str) -> Task:
    """Return the task of looking at a page."""
    return Task(path, via=via)


def sets(table: str, number: int, **cells: Cell) -> tuple[Wanted, ...]:
    """Return the conditions of changing cells of a row: one per cell."""
    return tuple([Wanted(table, number, {name: value}) for name, value in cells.items()])


class Verdict(NamedTuple):
    """Progress towards a goal.

    Args:
        held: For each thing wanted, whether it is so.
        unasked: Number of other changes.
    """

    held: tuple[bool, ...]
    unasked: int

    @property
    def is_reached(self) -> bool:
        """True if all that is wanted is so, and nothing else has changed."""
        return not self.unasked and all(self.held)

    @property
    def progress(self) -> float:
        """Share of the things wanted that are so; whatever else has changed counts as one that is not."""
        return sum(self.held) / (len(self.held) + self.unasked)


def judge(wants: Sequence[Wanted], changes: Sequence[Change], world: World, schema: Schema) -> Verdict:
    """Return how far a goal is reached.

    Args:
        wants: Goal.
        changes: Changes since the start.
        world: Initial state.
        schema: The tables.
    """
    held = [False] * len(wants)
    asked = {(wanted.table, wanted.id): set[str]() for wanted in wants if wanted.id}
    for wanted in wants:
        if wanted.id:
            asked[wanted.table, wanted.id].update(wanted.cells or ("",))
    unasked, added = 0, list[Change]()
    for table, number, row in changes:
        before = _row(world, table, number)
        if not before:
            added.append((table, number, row))
            continue
        allowed = asked.get((table, number), ())
        columns = ("id", *schema[table])
        changed = [name for name, old, new in zip(columns, before, row, strict=True) if old != new] if row else [""]
        unasked += sum(name not in allowed for name in changed)
        for place, wanted in enumerate(wants):
            if (wanted.table, wanted.id) == (table, number):
                cells = dict(zip(columns, row, strict=True)) if row else {}
                held[place] = _fits(wanted, cells, {}) if wanted.cells else not row
    ids: dict[str, int] = {}
    for place, wanted in enumerate(wants):
        if wanted.id:
            continue
        for change in added:
            cells = dict(zip(("id", *schema[change[0]]), change[2], strict=True))
            if change[0] == wanted.table and _fits(wanted, cells, ids):
                held[place] = True
                ids.setdefault(change[0], change[1])
                added.remove(change)
                break
    return Verdict(tuple(held), unasked + len(added))


def _row(world: World, table: str, number: int) -> Row:
    return next((row for row in world.tables[table] if row[0] == number), ())


def _fits(wanted: Wanted, cells: Mapping[str, Cell], ids: Mapping[str, int]) -> bool:
    for name, value in wanted.cells.items():
        if cells.get(name) != (ids.get(value.table) if isinstance(value, New) else value):
            return False
    return bool(cells)


# The way there.


def next_action(
    goal: Goal, held: Sequence[bool], page: Page, seen: Collection[str], site: Site, database: sqlite3.Connection
) -> str | None:
    """Return the expert's next action, None where all conditions hold or a form that it needs is gone.

    Args:
        goal: The goal.
        held: For each thing wanted, whether it is so.
        page: The page shown.
        seen: The paths looked at so far.
        site: The site.
        database: Its database, read for the titles that the goal's things are found by.
    """
    done = 0
    for task in goal.tasks:
        count = len(task.wants)
        is_done = all(held[done : done + count]) if task.form else task.path in seen
        done += count
        if not is_done:
            return _approach(task, page, (*task.via, task.path) if task.via else site.way(database, task.path))
    return None


def _approach(task: Task, page: Page, way: Sequence[str]) -> str | None:
    """Return the next step along a way: the farthest of its pages that can be reached from here at once."""
    here = without_note(page.path)
    for target in reversed(way):
        if target == here == task.path:
            return _send(task, page)
        if target != task.path and _base(target) == _base(here):  # what is looked for is not on this page of the list
            following = next((piece for piece in page.pieces if piece.label == "next"), None)
            if following is not None:
                return f"click {following.number}"
            continue
        for piece in page.pieces:
            if piece.kind == "link" and piece.href == target:
                return f"click {piece.number}"
        bare, values = parted(target)
        for number, form in enumerate(page.forms):
            if values and form.is_search and form.action == bare:
                return _enter(page, number, values)
    return "back"


def _base(path: str) -> tuple[str, dict[str, str]]:
    """Return a path whatever page of a list it shows."""
    bare, values = parted(path)
    values.pop("page", None)
    return bare, values


def _send(task: Task, page: Page) -> str | None:
    actions = [form.action for form in page.forms]
    return _enter(page, actions.index(task.form), task.fields) if task.form in actions else None


def _enter(page: Page, form: int, fields: Mapping[str, str]) -> str:
    pieces = [piece for piece in page.pieces if piece.form == form]
    for piece in pieces:
        wanted = fields.get(piece.label, piece.value)
        if piece.is_entry and wanted != piece.value:
            return _entering(piece, wanted)
    return f"click {next(piece.number for piece in pieces if piece.kind == 'button')}"


def _entering(piece: Piece, value: str) -> str:
    if piece.kind == "box":
        return f"{'check' if value == ON else 'uncheck'} {piece.number}"
    return f"{'fill' if piece.kind == 'field' else 'select'} {piece.number} {value}".rstrip()
