"""Families of updates."""

from __future__ import annotations

from turngym.envs.sql.contents import PLACES, TITLES
from turngym.envs.sql.domains import EVENT, PERSON, PLACE, THING
from turngym.envs.sql.drafts import Case, Draft, Family


def _chosen(case: Case) -> str:
    return f"id IN (SELECT e.id {case.source()})"


def _set_status(case: Case) -> Draft:
    taken = [each.named for each in case.conditions]
    statuses = [each for each in case.schema.domain.statuses if ("status", each) not in taken]
    new, column = statuses[int(case.numbers.share * len(statuses))], case.name(EVENT, "status")
    table = case.schema.tables[EVENT]
    request = f"Set the status of all {case.events} to '{new}'."
    return Draft(request, f"UPDATE {table} SET {column} = '{new}' WHERE {_chosen(case)}")


def _remove(case: Case) -> Draft:
    return Draft(f"Delete all {case.events}.", f"DELETE FROM {case.schema.tables[EVENT]} WHERE {_chosen(case)}")


def _raise(case: Case) -> Draft:
    schema, price, more = case.schema, case.name(THING, "price"), 5 * int(2 + 30 * case.numbers.share)
    table = schema.tables[THING]
    request = f"Raise the price of all {schema.nouns(THING)} {' and '.join(case.words)} by {more} cents."
    where = " AND ".join(each.sql for each in case.conditions)
    chosen = f"id IN (SELECT t.id FROM {table} t WHERE {where})"
    return Draft(request, f"UPDATE {table} SET {price} = {price} + {more} WHERE {chosen}")


def _add(case: Case) -> Draft:
    schema, share, other = case.schema, case.numbers.share, case.numbers.other
    kinds = schema.domain.kinds
    values: dict[str, str | int] = {
        "title": f"{TITLES[int(share * len(TITLES))]} {int(100 + 900 * other)}",
        "kind": kinds[int(other * len(kinds))],
        "stock": int(1 + 99 * share),
    }
    shown = ", ".join(f"{key} {_literal(value)}" for key, value in values.items())
    table, names = schema.tables[THING], schema.columns[THING]
    price = case.name(THING, "price")
    request = (
        f"Add a {schema.noun(THING)} with {shown}, and as price the highest price of the {schema.nouns(THING)} "
        f"{' and '.join(case.words)}, or 100 cents if there are none. Its id is the highest id plus 1."
    )
    where = " AND ".join(each.sql for each in case.conditions)
    parts = {
        "id": f"(SELECT MAX(id) + 1 FROM {table})",
        **{names[key]: _literal(value) for key, value in values.items()},
        price: f"COALESCE((SELECT MAX(t.{price}) FROM {table} t WHERE {where}), 100)",
    }
    return Draft(request, f"INSERT INTO {table} ({', '.join(parts)}) SELECT {', '.join(parts.values())}")


def _literal(value: str | int) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _move(case: Case) -> Draft:
    schema, home = case.schema, case.name(PERSON, "place")
    start = int(case.numbers.share * len(PLACES))
    one = PLACES[start]
    other = PLACES[(start + 1 + int(case.numbers.other * (len(PLACES) - 1))) % len(PLACES)]
    table, places, name = schema.tables[PERSON], schema.tables[PLACE], schema.columns[PLACE]["name"]
    request = f"All {schema.nouns(PERSON)} {' and '.join(case.words)} who come from {one} now come from {other}."
    number = f"(SELECT id FROM {places} WHERE {name} = '{{}}')"
    where = " AND ".join([f"p.{home} = {number.format(one)}", *(each.sql for each in case.conditions)])
    chosen = f"id IN (SELECT p.id FROM {table} p WHERE {where})"
    sql = f"UPDATE {table} SET {home} = {number.format(other)} WHERE {chosen}"
    return Draft(request, sql, named=(("place", one), ("place", other)))


def _tally(case: Case) -> Draft:
    schema, score, owner = case.schema, case.name(PERSON, "score"), case.column(EVENT, "person")
    table = schema.tables[PERSON]
    request = (
        f"Set the score of each {schema.noun(PERSON)} who has made at least one of the {case.events} to the number of "
        f"these; leave the others as they are."
    )
    number = f"SELECT COUNT(*) {case.source(also=f'{owner} = {table}.id')}"
    chosen = f"SELECT {owner} {case.source()}"
    return Draft(request, f"UPDATE {table} SET {score} = ({number}) WHERE id IN ({chosen})")


def _repeated(case: Case) -> Draft:
    schema, table = case.schema, case.schema.tables[EVENT]
    keys = ", ".join(case.column(EVENT, key) for key in ("person", "thing", "day"))
    request = (
        f"Among the {case.events}, keep of those with equal {schema.noun(PERSON)}, {schema.noun(THING)} and day only "
        f"the one with the lowest id, and delete the others."
    )
    kept = f"SELECT MIN(e.id) {case.source()} GROUP BY {keys}"
    return Draft(request, f"DELETE FROM {table} WHERE {_chosen(case)} AND id NOT IN ({kept})")


UPDATES = (
    Family(_set_status, is_update=True),
    Family(_remove, is_update=True),
    Family(_raise, THING, is_update=True),
    Family(_add, THING, least=2, is_update=True),
    Family(_move, PERSON, least=2, is_update=True, without=("place",)),
    Family(_tally, least=2, is_update=True, without=("score",)),
    Family(_repeated, least=2, is_update=True),
)
