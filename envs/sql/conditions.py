"""Conditions of requests: words and SQL for one property of an event, a person or a thing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from turngym.envs.sql.contents import FIRST_YEAR, LAST_YEAR, PLACES, Bound
from turngym.envs.sql.domains import EVENT, PERSON, PLACE, THING
from turngym.envs.sql.schema import Schema
from turngym.envs.website.draw import Dice

ALIASES = {EVENT: "e", PERSON: "p", THING: "t"}
"""Role -> how its table is called in the FROM clause."""
_EARLY = f"{FIRST_YEAR - 1}-06-15"


class Condition(NamedTuple):
    """A condition.

    Args:
        role: What it is about.
        words: Words that follow the noun.
        sql: The same in SQL, with the aliases of ``ALIASES``.
        named: Key of a column and the text that the condition names.
        bound: Bound that it names.
    """

    role: str
    words: str
    sql: str
    named: tuple[str, str] | None = None
    bound: Bound | None = None


Maker: TypeAlias = Callable[[Schema, Dice], Condition]


def _column(schema: Schema, role: str, key: str) -> str:
    return f"{ALIASES[role]}.{schema.columns[role][key]}"


def _equal(role: str, key: str, words: str, value: str, schema: Schema) -> Condition:
    return Condition(role, words.format(value), f"{_column(schema, role, key)} = '{value}'", (key, value))


def _middle_day(dice: Dice) -> str:
    return f"{(FIRST_YEAR + LAST_YEAR) // 2}-{dice.whole(1, 12):02}-{dice.whole(1, 28):02}"


def _since(role: str, key: str, words: str, schema: Schema, dice: Dice) -> Condition:
    day, column = _middle_day(dice), _column(schema, role, key)
    word, sign = dice.one((("before", "<"), ("on or after", ">="), ("after", ">")))
    bound = Bound(key, (day,), _EARLY if sign == ">=" else day)
    return Condition(role, f"{words} {word} {day}", f"{column} {sign} '{day}'", bound=bound)


def _missing(role: str, key: str, schema: Schema, dice: Dice) -> Condition:
    column = _column(schema, role, key)
    if dice.share() < 0.5:
        return Condition(role, f"without a {key}", f"{column} IS NULL", bound=Bound(key, (), 3))
    return Condition(role, f"with a {key}", f"{column} IS NOT NULL", bound=Bound(key, (), None))


def _status(schema: Schema, dice: Dice) -> Condition:
    return _equal(EVENT, "status", "with the status '{}'", dice.one(schema.domain.statuses), schema)


def _unlike(schema: Schema, dice: Dice) -> Condition:
    value = dice.one(schema.domain.statuses)
    column = _column(schema, EVENT, "status")
    return Condition(EVENT, f"with another status than '{value}'", f"{column} <> '{value}'", ("status", value))


def _dated(schema: Schema, dice: Dice) -> Condition:
    return _since(EVENT, "day", "dated", schema, dice)


def _year(schema: Schema, dice: Dice) -> Condition:
    return _in_year(schema, dice.whole(FIRST_YEAR, LAST_YEAR))


def _in_year(schema: Schema, year: int) -> Condition:
    ends = f"{year}-01-01", f"{year}-12-31", f"{year - 1}-12-31", f"{year + 1}-01-01"
    sql = f"substr({_column(schema, EVENT, 'day')}, 1, 4) = '{year}'"
    return Condition(EVENT, f"dated in {year}", sql, bound=Bound("day", ends, _EARLY))


def _amount(schema: Schema, dice: Dice) -> Condition:
    least = dice.whole(4, 8)
    if dice.share() < 0.5:
        return _at_least(schema, EVENT, "amount", least, f"with at least {least} {schema.domain.amount}")
    words, sql = f"with fewer than {least} {schema.domain.amount}", f"{_column(schema, EVENT, 'amount')} < {least}"
    return Condition(EVENT, words, sql, bound=Bound("amount", (least,), least))


def _at_least(schema: Schema, role: str, key: str, least: int, words: str) -> Condition:
    return Condition(role, words, f"{_column(schema, role, key)} >= {least}", bound=Bound(key, (least,), least - 1))


def _rated(schema: Schema, dice: Dice) -> Condition:
    return _missing(EVENT, "rating", schema, dice)


def _level(schema: Schema, dice: Dice) -> Condition:
    return _equal(PERSON, "level", "of level '{}'", dice.one(schema.domain.levels), schema)


def _home(schema: Schema, dice: Dice) -> Condition:
    value, names = dice.one(PLACES), schema.columns[PLACE]
    chosen = f"SELECT id FROM {schema.tables[PLACE]} WHERE {names['name']} = '{value}'"
    sql = f"{_column(schema, PERSON, 'place')} IN ({chosen})"
    return Condition(PERSON, f"from {value}", sql, ("place", value), Bound("place", (), None))


def _joined(schema: Schema, dice: Dice) -> Condition:
    return _since(PERSON, "joined", "that joined", schema, dice)


def _scored(schema: Schema, dice: Dice) -> Condition:
    return _missing(PERSON, "score", schema, dice)


def _kind(schema: Schema, dice: Dice) -> Condition:
    return _equal(THING, "kind", "of kind '{}'", dice.one(schema.domain.kinds), schema)


def _price(schema: Schema, dice: Dice) -> Condition:
    limit, column = 10 * dice.whole(70, 140), _column(schema, THING, "price")
    if dice.share() < 0.5:
        return _above(schema, limit)
    words, sql = f"with a price of at most {limit} cents", f"{column} <= {limit}"
    return Condition(THING, words, sql, bound=Bound("price", (limit,), limit + 10))


def _above(schema: Schema, limit: int) -> Condition:
    sql = f"{_column(schema, THING, 'price')} > {limit}"
    return Condition(THING, f"with a price above {limit} cents", sql, bound=Bound("price", (limit,), limit))


_PERSONS = ((_level, "level"), (_home, "place"), (_joined, "joined"), (_scored, "score"))
_THINGS = ((_kind, "kind"), (_price, "price"))
_EVENTS = ((_status, "status"), (_unlike, "status"), (_dated, "day"), (_year, "day"), (_amount, "amount"))
OF_ROLE: Mapping[str, Sequence[tuple[Maker, str]]] = {
    EVENT: (*_EVENTS, (_rated, "rating"), *_PERSONS, *_THINGS),
    PERSON: _PERSONS,
    THING: _THINGS,
}
"""Role -> what makes conditions on it, and the column that each is on; events have those of persons and things too."""


def drawn(schema: Schema, dice: Dice, role: str, count: int, without: Collection[str] = ()) -> list[Condition]:
    """Draw conditions on different columns.

    Args:
        schema: The schema.
        dice: Source of the choices.
        role: What they are about.
        count: Number of conditions.
        without: Keys of columns that none may be on.
    """
    left = [each for each in OF_ROLE[role] if each[1] not in without]
    found: list[Condition] = []
    while len(found) < count and left:
        maker, column = dice.one(left)
        found.append(maker(schema, dice))
        left = [each for each in left if each[1] != column]
    return found


def on_event(schema: Schema, condition: Condition) -> str:
    """Return the words of a condition as they follow the noun of an event."""
    link = {EVENT: "", PERSON: "by a {} ", THING: "for a {} "}[condition.role]
    return link.format(schema.noun(condition.role)) + condition.words


# Words with several meanings.


def _recent(schema: Schema, dice: Dice) -> tuple[Condition, ...]:
    day, column = _middle_day(dice), _column(schema, EVENT, "day")
    joined = _column(schema, PERSON, "joined")
    return (
        Condition(EVENT, f"dated on or after {day}", f"{column} >= '{day}'", bound=Bound("day", (day,), _EARLY)),
        _in_year(schema, LAST_YEAR),
        Condition(
            PERSON, f"that joined on or after {day}", f"{joined} >= '{day}'", bound=Bound("joined", (day,), _EARLY)
        ),
    )


def _large(schema: Schema, dice: Dice) -> tuple[Condition, ...]:
    least, limit = dice.whole(5, 8), 10 * dice.whole(80, 130)
    return (
        _at_least(schema, EVENT, "amount", least, f"with at least {least} {schema.domain.amount}"),
        _above(schema, limit),
    )


def _good(schema: Schema, dice: Dice) -> tuple[Condition, ...]:
    least, score = dice.whole(3, 4), dice.whole(20, 40)
    return (
        _at_least(schema, EVENT, "rating", least, f"with a rating of at least {least}"),
        _at_least(schema, PERSON, "score", score, f"with a score of at least {score}"),
        _kind(schema, dice),
    )


class Ambiguous(NamedTuple):
    """A word with several meanings, all about events.

    Args:
        meanings: Makes the conditions that it may stand for.
        without: Columns that other conditions are not on.
    """

    meanings: Callable[[Schema, Dice], tuple[Condition, ...]]
    without: tuple[str, ...]


AMBIGUOUS: Mapping[str, Ambiguous] = {
    "recent": Ambiguous(_recent, ("day", "joined")),
    "large": Ambiguous(_large, ("amount", "price")),
    "good": Ambiguous(_good, ("rating", "score", "kind")),
}
