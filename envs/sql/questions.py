"""Families of questions."""

from __future__ import annotations

from turngym.envs.sql.conditions import ALIASES
from turngym.envs.sql.domains import EVENT, PERSON, PLACE, THING
from turngym.envs.sql.drafts import Case, Draft, Family


def _count(case: Case) -> Draft:
    return Draft(f"How many {case.events} are there? Column: count.", f"SELECT COUNT(*) {case.source()}")


def _total(case: Case) -> Draft:
    amount = case.schema.domain.amount
    request = f"How many {amount} do the {case.events} have together, 0 if there are none? Column: total."
    return Draft(request, f"SELECT COALESCE(SUM({case.column(EVENT, 'amount')}), 0) {case.source()}")


def _who(case: Case) -> Draft:
    people = case.schema.nouns(PERSON)
    request = f"Which {people} have made at least one of the {case.events}? Columns: id, name."
    name = case.column(PERSON, "name")
    return Draft(request, f"SELECT DISTINCT p.id, {name} {case.source(PERSON)} ORDER BY p.id")


def _per_kind(case: Case) -> Draft:
    kind = case.column(THING, "kind")
    request = (
        f"For each kind of {case.schema.noun(THING)}, how many {case.events} are there? "
        "Leave out kinds without any. Columns: kind, count."
    )
    return Draft(request, f"SELECT {kind}, COUNT(*) {case.source(THING)} GROUP BY {kind} ORDER BY {kind}")


def _average(case: Case) -> Draft:
    rating = case.column(EVENT, "rating")
    request = (
        f"What is the mean rating of the {case.events}, not counting those without one, NULL if none has one? "
        "Column: mean."
    )
    return Draft(request, f"SELECT AVG({rating}) {case.source()}")


def _never(case: Case) -> Draft:
    schema = case.schema
    request = f"Which {schema.nouns(PERSON)} have made none of the {case.events}? Columns: id, name."
    owner, name = case.column(EVENT, "person"), case.name(PERSON, "name")
    made = f"SELECT {owner} {case.source()}"
    table = schema.tables[PERSON]
    return Draft(request, f"SELECT x.id, x.{name} FROM {table} x WHERE x.id NOT IN ({made}) ORDER BY x.id")


def _top(case: Case) -> Draft:
    schema, amount = case.schema, case.column(EVENT, "amount")
    owner = case.column(EVENT, "person")
    request = (
        f"Add up the {schema.domain.amount} of the {case.events} for each {schema.noun(PERSON)}. Which "
        f"{case.numbers.few} {schema.nouns(PERSON)} have the highest totals? Highest first, equal ones by id. "
        "Columns: id, total."
    )
    sql = f"SELECT {owner}, SUM({amount}) {case.source()} GROUP BY {owner} ORDER BY SUM({amount}) DESC, {owner}"
    return Draft(request, f"{sql} LIMIT {case.numbers.few}", is_ordered=True)


def _latest(case: Case) -> Draft:
    schema, owner, day = case.schema, case.column(EVENT, "person"), case.column(EVENT, "day")
    request = (
        f"For each {schema.noun(PERSON)} with at least one of the {case.events}, on which day was the last of these? "
        "Columns: id, day."
    )
    return Draft(request, f"SELECT {owner}, MAX({day}) {case.source()} GROUP BY {owner} ORDER BY {owner}")


def _often(case: Case) -> Draft:
    schema, owner, least = case.schema, case.column(EVENT, "person"), case.numbers.few
    request = (
        f"Which {schema.nouns(PERSON)} have made at least {least} of the {case.events}, and how many? "
        "Columns: id, count."
    )
    sql = f"SELECT {owner}, COUNT(*) {case.source()} GROUP BY {owner} HAVING COUNT(*) >= {least} ORDER BY {owner}"
    return Draft(request, sql)


def _both(case: Case) -> Draft:
    schema, owner = case.schema, case.column(EVENT, "person")
    first, second = case.conditions[:1], case.conditions[1:]
    noun = schema.noun(EVENT)
    request = (
        f"Which {schema.nouns(PERSON)} have made at least one {noun} {case.words[0]}, and also at least one {noun} "
        f"{' and '.join(case.words[1:])}, which may be the same one? Column: id."
    )
    parts = [f"SELECT {owner} {case.source(conditions=each)}" for each in (first, second)]
    return Draft(request, f"{parts[0]} INTERSECT {parts[1]} ORDER BY 1")


def _per_place(case: Case) -> Draft:
    schema, names = case.schema, case.schema.columns[PLACE]
    request = (
        f"For each {schema.noun(PLACE)}, how many {schema.nouns(PERSON)} {' and '.join(case.words)} come from it? "
        f"Also list {schema.nouns(PLACE)} without any. Columns: name, count."
    )
    on = " AND ".join([f"{case.column(PERSON, 'place')} = l.id", *(each.sql for each in case.conditions)])
    tables = f"{schema.tables[PLACE]} l LEFT JOIN {schema.tables[PERSON]} p ON {on}"
    sql = f"SELECT l.{names['name']}, COUNT(p.id) FROM {tables} GROUP BY l.id, l.{names['name']}"
    return Draft(request, f"{sql} ORDER BY l.{names['name']}")


def _above(case: Case) -> Draft:
    schema, alias, table = case.schema, ALIASES[THING], case.schema.tables[THING]
    price, kind = case.name(THING, "price"), case.name(THING, "kind")
    more = 10 * int(5 + 25 * case.numbers.share)
    request = (
        f"Which {schema.nouns(THING)} {' and '.join(case.words)} cost at least {more} cents more than the mean of all "
        f"{schema.nouns(THING)} of the same kind? Columns: id, title."
    )
    mean = f"SELECT AVG(o.{price}) FROM {table} o WHERE o.{kind} = {alias}.{kind}"
    where = " AND ".join([*(each.sql for each in case.conditions), f"{alias}.{price} >= ({mean}) + {more}"])
    title = case.column(THING, "title")
    return Draft(request, f"SELECT t.id, {title} FROM {table} t WHERE {where} ORDER BY t.id")


QUESTIONS = (
    Family(_count, most=2),
    Family(_total, most=2),
    Family(_who, most=2),
    Family(_per_kind),
    Family(_average, least=2, without=("rating",)),
    Family(_never, least=2),
    Family(_top, least=2),
    Family(_latest, least=2),
    Family(_often, least=2),
    Family(_both, least=2, fewest=2),
    Family(_per_place, PERSON, least=2, without=("place",)),
    Family(_above, THING, least=2, without=("price",)),
)
