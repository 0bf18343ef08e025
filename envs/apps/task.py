"""Instances: the records, the request, the plan that does it, and the conditions that then hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.apps.dialect import CALL, DIALECTS, SUBMIT, Act
from turngym.envs.apps.effects import PARENTS, SCHEMA
from turngym.envs.apps.fiction import Draft, Fiction
from turngym.envs.apps.file_parts import FILES
from turngym.envs.apps.functions import LIST_ACCOUNTS, SIGN_IN
from turngym.envs.apps.mail_parts import MAIL
from turngym.envs.apps.money_parts import MONEY
from turngym.envs.apps.part import PAGES, Maker, Part, Step
from turngym.envs.apps.session import Session
from turngym.envs.apps.time_parts import TIME
from turngym.envs.instances import canonical_text
from turngym.envs.service.tables import Rows, wants_of
from turngym.envs.website.draw import Dice
from turngym.envs.website.goal import New, Wanted
from turngym.envs.website.store import Change
from turngym.seeding import restart

PARTS: dict[str, Maker] = {each.__name__: each for each in (*MONEY, *TIME, *MAIL, *FILES)}
"""Kind -> maker of parts of a request."""


class Task(NamedTuple):
    """An instance.

    Args:
        number: Everything else follows from it.
        kinds: Kinds of the parts of the request.
        dialect: Names of functions.
        request: What is asked for.
        rows: Records at the start.
        keys: Account -> key.
        plan: Acts that do it, without looking functions up.
        wants: Conditions that hold after the plan.
    """

    number: int
    kinds: tuple[str, ...]
    dialect: int
    request: str
    rows: Rows
    keys: dict[int, str]
    plan: tuple[Act, ...]
    wants: tuple[Wanted, ...]


class Tasks:
    """Makes instances.

    Args:
        level: Difficulty from 1 to 3: the number of parts, and of accounts in each app.
        has_dialects: Whether names of functions differ between instances.
    """

    def __init__(self, level: int, has_dialects: bool) -> None:
        self._level, self._has_dialects = level, has_dialects
        self._generator = np.random.default_rng(0)  # set to the start of a stream for every number

    def text(self, number: int) -> str:
        """Return the canonical text of an instance: the kinds, and the number that everything else follows from."""
        return canonical_text({"kinds": list(self._kinds(number)), "level": self._level, "number": number})

    def _kinds(self, number: int) -> tuple[str, ...]:
        dice = Dice(restart(self._generator, "kinds of apps", self._level, number))
        return tuple(dice.some(tuple(PARTS), self._level, self._level))

    def task(self, number: int) -> Task:
        """Return the instance of a number."""
        kinds = self._kinds(number)
        dice = Dice(restart(self._generator, "apps", self._level, number))
        fiction = Fiction(dice, self._level)
        parts = [PARTS[kind](fiction) for kind in fiction.shuffled(kinds)]
        lines = [f"{place}. {part.text}" for place, part in enumerate(parts, 1)]
        request = parts[0].text if len(parts) == 1 else "\n".join(lines)
        dialect = dice.whole(1, DIALECTS - 1) if self._has_dialects else 0
        book = _Book(fiction)
        return Task(number, kinds, dialect, request, book.rows, book.keys, *_planned(parts, book))


class _Book:
    """Rows of a fiction with ids, in an order without meaning, and the keys of its accounts."""

    def __init__(self, fiction: Fiction) -> None:
        dice, last = fiction.dice, fiction.dice.whole(10, 400)
        self._ids: dict[int, int] = {}
        ordered = {table: fiction.shuffled(drafts) for table, drafts in fiction.drafts.items()}
        for drafts in ordered.values():
            for draft in drafts:
                last += dice.whole(1, 5)
                self._ids[id(draft)] = last
        self.rows = {table: dict(self._row(table, draft) for draft in drafts) for table, drafts in ordered.items()}
        self.keys = {
            number: f"{row['app']}-{dice.whole(1000, 9999)}-{number}" for number, row in self.rows["accounts"].items()
        }

    def _row(self, table: str, draft: Draft) -> tuple[int, dict[str, Any]]:
        ids, cells = self._ids, [(name, draft[name]) for name in SCHEMA[table]]
        found = ids[id(draft)]
        row = {"id": found} | {name: ids[id(value)] if isinstance(value, dict) else value for name, value in cells}
        return found, row

    def _plain(self, value: Any) -> Any:
        return self._ids[id(value)] if isinstance(value, dict) else value

    def account_of(self, step: Step) -> int:
        """Return the account that a call is made with."""
        return self._ids[id(step.account)]

    def act_of(self, step: Step) -> Act:
        """Return a call with ids and the key."""
        arguments = {name: self._plain(value) for name, value in step.arguments.items()}
        return Act(CALL, step.function, {"key": self.keys[self.account_of(step)], **arguments})


def _planned(parts: Sequence[Part], book: _Book) -> tuple[tuple[Act, ...], tuple[Wanted, ...]]:
    """Return the acts that do all parts and the conditions that then hold: signing in, then part by part."""
    session = Session(book.rows, book.keys)
    steps = [each for part in parts for each in (*part.reads, *part.writes)]
    accounts = dict.fromkeys(map(book.account_of, steps))
    acts = [Act(CALL, LIST_ACCOUNTS, {"page": PAGES}), *(Act(CALL, SIGN_IN, {"account": each}) for each in accounts)]
    plan: dict[str, Act] = {}
    for act in (*acts, *map(book.act_of, steps)):
        if act.text not in plan:
            plan |= {each.text: each for each in _performed(act, session)}
    wants = wants_of(book.rows, SCHEMA, _wholes_first(session.tables.changes()))
    return (*plan.values(), Act(SUBMIT)), tuple([_of_any_id(each, book.rows) for each in wants])


def _performed(act: Act, session: Session) -> list[Act]:
    """Carry out an act of a plan, for each page where it stands for all, and return what was carried out."""
    if act.arguments.get("page") != PAGES:
        session.perform_strictly(act)
        return [act]
    found, page, pages = [act], 0, 1
    while page < pages:
        page += 1
        found.append(act._replace(arguments={**act.arguments, "page": page}))
        pages = int(session.perform_strictly(found[-1]).partition("\n")[0].rpartition(" ")[2])
    return found[1:]


def _wholes_first(changes: list[Change]) -> list[Change]:
    """Return changes with the rows that others are parts of first: conditions on new parts name the first new row."""
    wholes = {
        (PARENTS[table][1], row[1 + SCHEMA[table].index(PARENTS[table][0])])
        for table, _, row in changes
        if table in PARENTS and row
    }
    return sorted(changes, key=lambda each: each[:2] not in wholes)


def _of_any_id(wanted: Wanted, rows: Rows) -> Wanted:
    """Return a condition on a new part whose whole is new too as one that names no id."""
    key, whole = PARENTS.get(wanted.table, ("", ""))
    if wanted.id or not key or wanted.cells[key] in rows[whole]:
        return wanted
    return Wanted(wanted.table, 0, {**wanted.cells, key: New(whole)})
