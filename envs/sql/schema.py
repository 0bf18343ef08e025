"""Schemas: names of tables and columns drawn for a domain, with their documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from turngym.envs.sql.domains import DOMAINS, EVENT, PERSON, PLACE, ROLES, THING, Domain
from turngym.envs.website.draw import Dice
from turngym.seeding import stream

VARIANTS = 32
"""Schemas of a domain for each level."""
LEGACY = "legacy"
"""Key of a column that is no longer kept up to date."""
Row: TypeAlias = tuple[Any, ...]


class Column(NamedTuple):
    """A column before it has got its name.

    Args:
        key: What it means.
        names: Names to draw from; ``{place}`` and other roles stand for their nouns.
        kind: Type and constraints in SQL.
        text: Documentation.
    """

    key: str
    names: tuple[str, ...]
    kind: str
    text: str


_TEXT, _WHOLE = "TEXT NOT NULL", "INTEGER NOT NULL"
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    PLACE: (
        Column("name", ("name", "title", "label"), _TEXT, "Name of the {place}; no two are equal."),
        Column("region", ("region", "zone", "area"), _TEXT, "Region."),
    ),
    PERSON: (
        Column("name", ("name", "full_name", "label"), _TEXT, "Name; several {persons} may share one."),
        Column("place", ("{place}_id", "home_id", "from_id"), "INTEGER", "The {place} that the {person} comes from."),
        Column("joined", ("joined", "since", "member_from"), _TEXT, "Day of joining, as YYYY-MM-DD."),
        Column("level", ("level", "tier", "grp"), _TEXT, "Level: {levels}."),
        Column("score", ("score", "credit", "mark"), "INTEGER", "Score."),
        Column(LEGACY, ("{place}", "home", "origin"), "TEXT", "Copied once and often wrong: do not use it."),
    ),
    THING: (
        Column("title", ("title", "name", "label"), _TEXT, "Title of the {thing}."),
        Column("kind", ("kind", "type", "category"), _TEXT, "Kind: {kinds}."),
        Column("price", ("price", "cents", "unit_price"), _WHOLE, "Price in cents."),
        Column("stock", ("stock", "spare", "available"), _WHOLE, "Number in stock."),
    ),
    EVENT: (
        Column("person", ("{person}_id", "by_id", "owner"), _WHOLE, "The {person} who made the {event}."),
        Column("thing", ("{thing}_id", "item", "for_id"), _WHOLE, "The {thing} that the {event} is for."),
        Column("day", ("day", "date", "made_on"), _TEXT, "Day of the {event}, as YYYY-MM-DD."),
        Column("amount", ("{amount}", "amount", "qty"), _WHOLE, "Number of {amount} of the {event}."),
        Column("status", ("status", "state", "phase"), _TEXT, "Status: {statuses}."),
        Column("rating", ("rating", "stars", "grade"), "INTEGER", "Rating from 1 to 5."),
        Column(LEGACY, ("old_status", "old_state", "flag"), "TEXT", "Of an older program, often wrong: do not use it."),
    ),
}
_BY_KEY = {role: {each.key: each for each in columns} for role, columns in COLUMNS.items()}
REFERENCES = {(PERSON, "place"): PLACE, (EVENT, "person"): PERSON, (EVENT, "thing"): THING}
_SWAPS = ((THING, "price", "stock"), (EVENT, "amount", "rating"))
"""Columns that may have each other's name."""


@dataclass(frozen=True, eq=False)
class Schema:
    """A schema.

    Args:
        key: Numbers of domain and variant, and the level.
        domain: The domain.
        tables: Role -> name of the table.
        columns: Role -> key -> name, ``id`` first, in the order of the table.
    """

    key: tuple[int, int, int]
    domain: Domain
    tables: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str]]

    def noun(self, role: str) -> str:
        """Return the singular for a row of a table."""
        return self.domain.nouns[role][0]

    def nouns(self, role: str) -> str:
        """Return the plural for rows of a table."""
        return self.domain.nouns[role][1]

    def role_of(self, table: str) -> str | None:
        """Return the role of a table by its name, None if there is no such table."""
        return next((role for role, name in self.tables.items() if name == table), None)

    @cached_property
    def ddl(self) -> tuple[str, ...]:
        """Statements that create the tables."""
        found = list[str]()
        for role in ROLES:
            defined = ["id INTEGER PRIMARY KEY"]
            for key, name in self._named(role):
                other = REFERENCES.get((role, key))
                points = f" REFERENCES {self.tables[other]}(id)" if other else ""
                defined.append(f"{name} {_BY_KEY[role][key].kind}{points}")
            found.append(f"CREATE TABLE {self.tables[role]} ({', '.join(defined)})")
        return tuple(found)

    @cached_property
    def listing(self) -> str:
        """The list of tables, as agents read it."""
        return "\n".join(f"{self.tables[role]}: one row for each {self.noun(role)}" for role in ROLES)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Name of a table -> its description, as agents read it."""
        words, found = _words(self.domain), dict[str, str]()
        for role in ROLES:
            lines = [f"Table {self.tables[role]}:", "id INTEGER, key"]
            for key, name in self._named(role):
                kind, other = _BY_KEY[role][key].kind, REFERENCES.get((role, key))
                missing = "" if "NOT NULL" in kind else ", may be NULL"
                shown = f", refers to {self.tables[other]}.id" if other else ""
                lines.append(f"{name} {kind.split()[0]}{missing}{shown}: {_BY_KEY[role][key].text.format(**words)}")
            found[self.tables[role]] = "\n".join(lines)
        return found

    @cached_property
    def inserts(self) -> Mapping[str, str]:
        """Role -> statement that adds a row."""
        return {
            role: f"INSERT INTO {self.tables[role]} VALUES ({', '.join('?' * len(self.columns[role]))})"
            for role in ROLES
        }

    @cached_property
    def orders(self) -> Mapping[str, Callable[[Sequence[Any]], Row]]:
        """Role -> puts a row or columns in the order of ``COLUMNS`` in the order of the table."""
        found = dict[str, Callable[[Sequence[Any]], Row]]()
        for role in ROLES:
            places = {key: place for place, key in enumerate(["id", *_BY_KEY[role]])}
            found[role] = itemgetter(*(places[key] for key in self.columns[role]))
        return found

    def _named(self, role: str) -> list[tuple[str, str]]:
        """Return keys and names of the columns after the id."""
        return list(self.columns[role].items())[1:]


@lru_cache(maxsize=2048)
def schema_of(domain: int, variant: int, level: int) -> Schema:
    """Return a schema.

    Args:
        domain: Place among the domains.
        variant: Number below ``VARIANTS``.
        level: Difficulty; names mislead more often at higher ones.

    >>> schema = schema_of(0, 0, 1)
    >>> len(schema.ddl), schema.noun("event")
    (4, 'purchase')
    """
    found = DOMAINS[domain]
    dice = Dice(stream("sql schema", domain, variant, level))
    style = dice.whole(0, 2)
    tables = {
        role: (plural, f"t_{singular}", f"{singular}_data")[style] for role, (singular, plural) in found.nouns.items()
    }
    keys = {role: _keys(dice, role, level) for role in ROLES}
    columns = {role: _named(found, dice, role, keys[role]) for role in ROLES}
    for role, one, other in _SWAPS:
        if dice.share() < (0.0, 0.25, 0.6)[level - 1]:
            names = columns[role]
            names[one], names[other] = names[other], names[one]
    return Schema((domain, variant, level), found, tables, columns)


def _keys(dice: Dice, role: str, level: int) -> list[str]:
    """Return the keys of the columns of a table, in the order of the table."""
    kept = [each.key for each in COLUMNS[role] if each.key != LEGACY or dice.share() < (0.3, 0.6, 0.9)[level - 1]]
    return sorted(kept, key=lambda key: dice.share())


def _named(domain: Domain, dice: Dice, role: str, keys: Sequence[str]) -> dict[str, str]:
    words = _words(domain)
    names = {"id": "id"}
    for key in keys:
        options = [name.format(**words) for name in _BY_KEY[role][key].names]
        names[key] = dice.one([name for name in options if name not in names.values()])
    return names


def _words(domain: Domain) -> dict[str, str]:
    words = {role: singular for role, (singular, _) in domain.nouns.items()}
    words |= {f"{role}s": plural for role, (_, plural) in domain.nouns.items()}
    lists = {"kinds": domain.kinds, "statuses": domain.statuses, "levels": domain.levels}
    return {**words, **{name: ", ".join(values) for name, values in lists.items()}, "amount": domain.amount}
