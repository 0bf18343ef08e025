"""Parts that questions and updates share: FROM clauses, and words for events under conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turngym.envs.sql.conditions import ALIASES, Condition
from turngym.envs.sql.domains import EVENT, PERSON, THING
from turngym.envs.sql.schema import Schema


class Draft(NamedTuple):
    """A request with its solution.

    Args:
        request: What is wanted, for the agent.
        sql: The query or statement that does it.
        is_ordered: Whether the order of rows counts.
        named: Texts that contents must have, by keys of columns, besides those of conditions.
    """

    request: str
    sql: str
    is_ordered: bool = False
    named: tuple[tuple[str, str], ...] = ()


class Numbers(NamedTuple):
    """Constants of a request, drawn before it is known which meaning a word has.

    Args:
        few: A number from 2 to 4.
        share: A number in [0, 1).
        other: Another one.
    """

    few: int
    share: float
    other: float


class Case(NamedTuple):
    """What a family of requests makes a draft of.

    Args:
        schema: The schema.
        conditions: Conditions on the role that the family is about.
        words: Words of the conditions.
        numbers: Constants.
    """

    schema: Schema
    conditions: Sequence[Condition]
    words: Sequence[str]
    numbers: Numbers

    @property
    def events(self) -> str:
        """Words for the events that fulfil the conditions."""
        return f"{self.schema.nouns(EVENT)} {' and '.join(self.words)}"

    @property
    def event(self) -> str:
        """Words for one of these."""
        return f"{self.schema.noun(EVENT)} {' and '.join(self.words)}"

    def column(self, role: str, key: str) -> str:
        """Return a column with the alias of its table."""
        return f"{ALIASES[role]}.{self.schema.columns[role][key]}"

    def name(self, role: str, key: str) -> str:
        """Return the name of a column."""
        return self.schema.columns[role][key]

    def source(self, *roles: str, conditions: Sequence[Condition] | None = None, also: str = "") -> str:
        """Return the FROM and WHERE clauses for events that fulfil conditions.

        Args:
            roles: Further roles whose tables are joined.
            conditions: The conditions; None for all of the case.
            also: One more condition.
        """
        chosen = self.conditions if conditions is None else conditions
        needed = {*roles, *(each.role for each in chosen)}
        text = f"FROM {self.schema.tables[EVENT]} e"
        for role in (PERSON, THING):
            if role in needed:
                text += f" JOIN {self.schema.tables[role]} {ALIASES[role]}"
                text += f" ON {ALIASES[role]}.id = {self.column(EVENT, role)}"
        parts = [each.sql for each in chosen] + ([also] if also else [])
        return f"{text} WHERE {' AND '.join(parts)}" if parts else text


class Family(NamedTuple):
    """A family of requests.

    Args:
        make: Makes a draft of a case.
        role: What its conditions are about.
        least: Level from which on it is drawn.
        most: Level up to which it is drawn.
        fewest: Fewest conditions.
        is_update: Whether it changes the database.
        without: Keys of columns that its conditions are not on.
    """

    make: Callable[[Case], Draft]
    role: str = EVENT
    least: int = 1
    most: int = 3
    fewest: int = 1
    is_update: bool = False
    without: tuple[str, ...] = ()
