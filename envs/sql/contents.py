"""Contents of databases: rows with missing values, equal names and duplicates; what a request names is frequent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from turngym.envs.sql.domains import EVENT, PERSON, PLACE, THING
from turngym.envs.sql.schema import Row, Schema
from turngym.envs.website.draw import Dice
from turngym.seeding import stream

Named: TypeAlias = Mapping[str, tuple[str, ...]]
"""Key of a column -> texts that a request names: these are frequent."""
Rows: TypeAlias = Mapping[str, Sequence[Row]]
"""Role -> rows in the order of the table's columns."""
PLAIN, ON_BOUNDS, MISSED = "plain", "on bounds", "missed"
"""Forms of contents: as drawn, with rows on the bounds that a request names, and without rows that it is about."""
PATTERNS = 1024
"""Patterns that contents are made of; those of the first half are shown, those of the second hidden."""
FIRST_YEAR, LAST_YEAR = 2022, 2024
REGIONS = ("north", "east", "south", "west")
# fmt: off
PLACES = (
    "Ilva", "Oder", "Brant", "Keld", "Tarn", "Moss", "Arden", "Lisle", "Fenn", "Holt", "Sorrel", "Quay", "Dunmore",
    "Vale", "Marsh", "Perth", "Corin", "Esker", "Wick", "Yarm",
)
PEOPLE = (
    "Ada Berg", "Bo Lind", "Cleo Voss", "Dan Ruiz", "Eva Novak", "Finn Katz", "Gus Adler", "Hana Ito", "Ivo Pohl",
    "Jade Moor", "Kai Sand", "Lena Frey", "Max O'Dea", "Nora Tal", "Otto Wirt", "Pia Roth",
)
TITLES = (
    "Aurora", "Basalt", "Comet", "Dune", "Ember", "Fable", "Glade", "Harbor", "Iris", "Jasper", "Krill", "Lotus",
    "Mirage", "Nimbus", "Onyx", "Prism", "Quill", "Ripple", "Saga", "Tundra",
)
# fmt: on
_NUMBERED = {
    **{"place": (PERSON, 2), "joined": (PERSON, 3), "score": (PERSON, 5), "price": (THING, 3)},
    **{"day": (EVENT, 3), "amount": (EVENT, 4), "rating": (EVENT, 6)},
}
"""Key of a column with bounds -> the role of its table, and its place there."""
_ON_BOUND = 0.5
_RATED, _SCORED, _AT_HOME, _REPEATED, _LEGACY_RIGHT = 0.7, 0.75, 0.85, 0.15, 0.5
_FREQUENT = (0, 0, 0, 0, 1, 1, 2, 2, 3, 4)
"""Places among the texts of a column, as often as they occur."""


class Bound(NamedTuple):
    """A bound that a condition names.

    Args:
        key: Key of the column.
        near: Values that are on the bound; empty for none.
        missed: A value that does not fulfil the condition.
    """

    key: str
    near: tuple[str | int, ...]
    missed: str | int | None


def rows_of(schema: Schema, pattern: int, named: Named, bounds: Sequence[Bound] = (), form: str = PLAIN) -> Rows:
    """Return the content of a database.

    Args:
        schema: Its schema.
        pattern: Number below ``PATTERNS``; everything else follows from it.
        named: What the request names.
        bounds: Bounds that it names.
        form: ``PLAIN``, ``ON_BOUNDS`` or ``MISSED``.
    """
    places, persons, things, events = _pattern(pattern)
    domain = schema.domain
    names = _named_first(PLACES[pattern % 7 :], named.get("place", ()))
    order = _named_first if form != MISSED else _without
    levels, kinds = (order(getattr(domain, f"{key}s"), named.get(key, ())) for key in ("level", "kind"))
    statuses = order(domain.statuses, named.get("status", ()))
    drawn: Rows = {
        PLACE: [(number, names[name], region) for number, name, region in places],
        PERSON: [
            (number, name, home, day, levels[level % len(levels)], score, None if legacy is None else names[legacy])
            for number, name, home, day, level, score, legacy in persons
        ],
        THING: [
            (number, title, kinds[kind % len(kinds)], price, stock) for number, title, kind, price, stock in things
        ],
        EVENT: [
            (*first, statuses[status % len(statuses)], rating, statuses[legacy % len(statuses)])
            for first, status, rating, legacy in events
        ],
    }
    if form != PLAIN:
        drawn = _missed(drawn, bounds) if form == MISSED else _on_bounds(drawn, bounds, pattern)
    return {role: list(map(schema.orders[role], rows)) for role, rows in drawn.items()}


def _missed(drawn: Rows, bounds: Sequence[Bound]) -> Rows:
    """Return rows that all miss each bound."""
    found = dict(drawn)
    for bound in bounds:
        role, place = _NUMBERED[bound.key]
        found[role] = [(*row[:place], bound.missed, *row[place + 1 :]) for row in found[role]]
    return found


def _on_bounds(drawn: Rows, bounds: Sequence[Bound], pattern: int) -> Rows:
    """Return rows of which every other one is on each bound."""
    found, dice = dict(drawn), Dice(stream("sql bounds", pattern))
    for role, place, near in [(*_NUMBERED[bound.key], bound.near) for bound in bounds if bound.near]:
        rows = found[role]
        moved = ((*row[:place], dice.one(near), *row[place + 1 :]) if dice.share() < _ON_BOUND else row for row in rows)
        found[role] = list(moved)
    return found


def _without(options: Sequence[str], named: Sequence[str]) -> list[str]:
    return [each for each in options if each not in named] or list(options)


def _named_first(options: Sequence[str], named: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*named, *options]))


def _day(dice: Dice) -> str:
    return f"{dice.whole(FIRST_YEAR, LAST_YEAR)}-{dice.whole(1, 12):02}-{dice.whole(1, 28):02}"


@lru_cache(maxsize=PATTERNS)
def _pattern(number: int) -> tuple[list[Any], ...]:
    """Return rows with places among texts instead of the texts of a domain."""
    dice = Dice(stream("sql pattern", number))
    start = dice.whole(1, 30)
    places = [(start + place, place, dice.one(REGIONS)) for place in range(dice.whole(4, 6))]
    persons, things = _persons(dice, places), _things(dice)
    return places, persons, things, _events(dice, persons, things)


def _persons(dice: Dice, places: Sequence[Any]) -> list[Any]:
    found, start = [], dice.whole(1, 60)
    for number in range(start, start + dice.whole(9, 13)):
        home = dice.one(_FREQUENT) % len(places) if dice.share() < _AT_HOME else None
        copied = home if dice.share() < _LEGACY_RIGHT else dice.whole(0, len(places) - 1)
        score = dice.whole(0, 60) if dice.share() < _SCORED else None
        place = None if home is None else places[home][0]
        found.append((number, dice.one(PEOPLE), place, _day(dice), dice.one(_FREQUENT), score, copied))
    return found


def _things(dice: Dice) -> list[Any]:
    start = dice.whole(1, 60)
    return [
        (number, dice.one(TITLES), dice.one(_FREQUENT), 10 * dice.whole(10, 200), dice.whole(0, 40))
        for number in range(start, start + dice.whole(8, 12))
    ]


def _events(dice: Dice, persons: Sequence[Any], things: Sequence[Any]) -> list[Any]:
    """Return events of most persons and things, some twice on a day."""
    people, goods = persons[dice.whole(0, 1) : -dice.whole(1, 2)], things[dice.whole(0, 1) : -dice.whole(1, 2)]
    found, start = list[Any](), dice.whole(1, 90)
    for number in range(start, start + dice.whole(26, 36)):
        person, thing, day = dice.one(people)[0], dice.one(goods)[0], _day(dice)
        if found and dice.share() < _REPEATED:
            person, thing, day = dice.one(found)[0][1:4]
        status, rating = dice.one(_FREQUENT), dice.whole(1, 5) if dice.share() < _RATED else None
        legacy = status if dice.share() < _LEGACY_RIGHT else dice.one(_FREQUENT)
        found.append(((number, person, thing, day, dice.whole(1, 12)), status, rating, legacy))
    return found
