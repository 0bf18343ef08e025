"""Contents of databases: rows with missing values, equal names and duplicates; what a request names is frequent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from turngym.envs.sql.domains import EVENT, PERSON, PLACE, ROLES, THING
from turngym.envs.sql.schema import Row, Schema
from turngym.envs.website.draw import BLOCK
from turngym.seeding import stream

Named: TypeAlias = Mapping[str, tuple[str, ...]]
"""Key of a column -> texts that a request names: these are frequent."""
Rows: TypeAlias = Mapping[str, Sequence[Row]]
"""Role -> rows in the order of the table's columns."""
Columns: TypeAlias = Mapping[str, list[Sequence[Any]]]
"""Role -> columns in the order of ``COLUMNS``, after the id."""
Share: TypeAlias = Callable[[], float]
"""Returns the next of a stream of numbers from 0 up to, but not including, 1."""
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
_DAYS = [
    [[f"{year}-{month:02}-{day:02}" for day in range(1, 29)] for month in range(1, 13)]
    for year in range(FIRST_YEAR, LAST_YEAR + 1)
]
_PATTERN_BLOCKS, _BOUND_BLOCKS = 11, 7
"""Blocks of numbers that are enough for the largest pattern, and for six bounds on each of 36 rows."""


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
    drawn = _pattern(pattern)
    domain = schema.domain
    places = _named_first(PLACES[pattern % 7 :], named.get("place", ()))
    order = _named_first if form != MISSED else _without
    levels, kinds = (order(getattr(domain, f"{key}s"), named.get(key, ())) for key in ("level", "kind"))
    statuses = order(domain.statuses, named.get("status", ()))
    columns = {role: list(found) for role, found in drawn.items()}
    for role, place, texts in (
        *((PLACE, 1, places), (PERSON, 4, levels), (PERSON, 6, places)),
        *((THING, 2, kinds), (EVENT, 5, statuses), (EVENT, 7, statuses)),
    ):
        count = len(texts)
        columns[role][place] = [None if each is None else texts[each % count] for each in columns[role][place]]
    if form == MISSED:
        _miss(columns, bounds)
    elif form == ON_BOUNDS:
        _put_on_bounds(columns, bounds, pattern)
    return {role: list(zip(*schema.orders[role](columns[role]), strict=True)) for role in ROLES}


def _miss(columns: Columns, bounds: Sequence[Bound]) -> None:
    """Let all rows miss each bound."""
    for bound in bounds:
        role, place = _NUMBERED[bound.key]
        columns[role][place] = [bound.missed] * len(columns[role][place])


def _put_on_bounds(columns: Columns, bounds: Sequence[Bound], pattern: int) -> None:
    """Put about every other row on each bound."""
    share = _shares_for_bounds(pattern).tolist().pop
    for role, place, near in [(*_NUMBERED[bound.key], bound.near) for bound in bounds if bound.near]:
        count = len(near)
        columns[role][place] = [
            near[int(share() * count)] if share() < _ON_BOUND else each for each in columns[role][place]
        ]


def _without(options: Sequence[str], named: Sequence[str]) -> list[str]:
    return [each for each in options if each not in named] or list(options)


def _named_first(options: Sequence[str], named: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*named, *options]))


def _shares(name: str, pattern: int, blocks: int) -> npt.NDArray[np.float64]:
    """Return numbers of a stream as :class:`Dice` gives them, the first one last."""
    drawn: npt.NDArray[np.float64] = stream(name, pattern).random((blocks, BLOCK))
    return drawn[::-1].ravel()


@lru_cache(maxsize=PATTERNS)
def _shares_for_bounds(pattern: int) -> npt.NDArray[np.float64]:
    return _shares("sql bounds", pattern, _BOUND_BLOCKS)


@lru_cache(maxsize=PATTERNS)
def _pattern(number: int) -> Mapping[str, Sequence[Sequence[Any]]]:
    """Return columns by role, with places among texts instead of the texts of a domain."""
    share = _shares("sql pattern", number, _PATTERN_BLOCKS).tolist().pop
    start = _whole(share, 1, 30)
    places = [(start + place, place, REGIONS[int(share() * len(REGIONS))]) for place in range(_whole(share, 4, 6))]
    persons, things = _persons(share, [each[0] for each in places]), _things(share)
    rows = {PLACE: places, PERSON: persons, THING: things, EVENT: _events(share, persons, things)}
    return {role: list(zip(*found, strict=True)) for role, found in rows.items()}


def _whole(share: Share, low: int, high: int) -> int:
    return low + int(share() * (high - low + 1))


def _frequent(share: Share) -> int:
    return _FREQUENT[int(share() * len(_FREQUENT))]


def _day(share: Share) -> str:
    return _DAYS[int(share() * len(_DAYS))][int(share() * 12)][int(share() * 28)]


def _persons(share: Share, places: Sequence[int]) -> list[Row]:
    found, start = list[Row](), _whole(share, 1, 60)
    for number in range(start, start + _whole(share, 9, 13)):
        home = _frequent(share) % len(places) if share() < _AT_HOME else None
        copied = home if share() < _LEGACY_RIGHT else _whole(share, 0, len(places) - 1)
        score = _whole(share, 0, 60) if share() < _SCORED else None
        place = None if home is None else places[home]
        name = PEOPLE[int(share() * len(PEOPLE))]
        found.append((number, name, place, _day(share), _frequent(share), score, copied))
    return found


def _things(share: Share) -> list[Row]:
    start = _whole(share, 1, 60)
    return [
        (
            *(number, TITLES[int(share() * len(TITLES))], _frequent(share)),
            *(10 * _whole(share, 10, 200), _whole(share, 0, 40)),
        )
        for number in range(start, start + _whole(share, 8, 12))
    ]


def _events(share: Share, persons: Sequence[Row], things: Sequence[Row]) -> list[Row]:
    """Return events of most persons and things, some twice on a day."""
    people, goods = ([row[0] for row in rows[int(share() * 2) : -1 - int(share() * 2)]] for rows in (persons, things))
    found, start = list[Row](), _whole(share, 1, 90)
    for number in range(start, start + _whole(share, 26, 36)):
        person, thing, day = people[int(share() * len(people))], goods[int(share() * len(goods))], _day(share)
        if found and share() < _REPEATED:
            person, thing, day = found[int(share() * len(found))][1:4]
        status, rating = _frequent(share), 1 + int(share() * 5) if share() < _RATED else None
        legacy = status if share() < _LEGACY_RIGHT else _frequent(share)
        found.append((number, person, thing, day, 1 + int(share() * 12), status, rating, legacy))
    return found
