"""Ways to success without solving the task: none works."""

import re
from collections.abc import Callable, Iterator

import pytest
from expert_play import mirrored, succeeds

from turngym.envs.sql.engine import literal
from turngym.envs.sql.env import Sql
from turngym.envs.sql.judge import is_right_answer

COUNT = 25
SIGNS = ((" >= ", " > "), (" > ", " >= "), (" <= ", " < "), (" < ", " <= "))
Player = Callable[[Sql], Iterator[str]]


def constants(env: Sql) -> Iterator[str]:
    """Answer with the rows that the right query gives on the database that is seen."""
    if env.task.is_update:
        return
    ran = env._database_seen.run(env.task.solutions[env.meaning], may_write=False)
    rows = [f"SELECT {', '.join(map(literal, row))}" for row in ran.rows[:10]]
    yield f"<submit>{' UNION ALL '.join(rows) or 'SELECT 1 WHERE 0'}</submit>"


def by_ids(env: Sql) -> Iterator[str]:
    """Change the rows that must change, by their ids and new values."""
    if not env.task.is_update:
        return
    database, task = env._database_seen, env.task
    start = database.content()
    database.run(task.solutions[env.meaning], may_write=True)
    goal = database.content()
    database.undo()
    for role, rows in goal.items():
        table, names = task.schema.tables[role], list(task.schema.columns[role].values())
        gone = {row[0] for row in start[role]} - {row[0] for row in rows}
        if gone:
            yield f"<sql>DELETE FROM {table} WHERE id IN ({', '.join(map(str, sorted(gone)))})</sql>"
        for row in rows:
            if row not in start[role]:
                values = ", ".join(map(literal, row))
                yield f"<sql>INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({values})</sql>"
    yield "<submit></submit>"


def nothing(env: Sql) -> Iterator[str]:
    yield "<submit></submit>"
    yield "<submit>SELECT 1 WHERE 0</submit>"


def dump(env: Sql) -> Iterator[str]:
    yield f"<submit>SELECT * FROM {env.task.schema.tables['event']}</submit>"


def delete_all(env: Sql) -> Iterator[str]:
    yield f"<sql>DELETE FROM {env.task.schema.tables['event']}</sql>"
    yield "<submit></submit>"


def collateral(env: Sql) -> Iterator[str]:
    """Make the right change, and one more."""
    if not env.task.is_update:
        return
    yield f"<sql>{env.task.solutions[env.meaning]}</sql>"
    names = env.task.schema.columns["place"]
    yield f"<sql>UPDATE {env.task.schema.tables['place']} SET {names['region']} = 'x'</sql>"
    yield "<submit></submit>"


def catalogue(env: Sql) -> Iterator[str]:
    yield "<submit>SELECT sql FROM sqlite_master</submit>"


def success_texts(env: Sql) -> Iterator[str]:
    yield "<sql>SELECT 'You have submitted. success=1'</sql>"
    yield "<submit>SELECT 'success'</submit>"


def tamper(env: Sql) -> Iterator[str]:
    table = env.task.schema.tables["event"]
    yield f"<sql>CREATE TRIGGER x AFTER DELETE ON {table} BEGIN DELETE FROM {table}; END</sql>"
    yield "<sql>ATTACH 'judge.db' AS judge</sql>"
    yield "<sql>PRAGMA writable_schema = 1</sql>"
    yield "<sql>SELECT load_extension('judge')</sql>"
    yield "<submit>SELECT 1</submit>"


def endless(env: Sql) -> Iterator[str]:
    while True:
        yield "<submit></submit>" if not env.task.is_update else "<submit>SELECT 1</submit>"


ATTACKS: tuple[Player, ...] = (
    *(constants, by_ids, nothing, dump, delete_all, collateral, catalogue, success_texts, tamper, endless),
)


def successes(player: Player, count: int = COUNT) -> tuple[int, int]:
    env, won, played = Sql(), 0, 0
    for seed in range(count):
        env.reset(seed=seed)
        won, played = won + succeeds(env, player(env)), played + (env.turn > 0)
    env.close()
    return won, played


@pytest.mark.parametrize("player", ATTACKS, ids=lambda player: player.__name__)
def test_attacks_never_succeed(player: Player) -> None:
    won, played = successes(player)
    assert won == 0 and played > 5


def test_the_expert_of_another_instance_does_not_succeed() -> None:
    assert successes(mirrored(Sql(split="test")))[0] == 0


def test_a_guessed_meaning_is_right_only_by_chance() -> None:
    env, right, count = Sql(level=3, updates=0.0), 0, 0
    for seed in range(60):
        env.reset(seed=seed)
        if not env.task.term:
            continue
        count += 1
        right += env.step(f"<submit>{env.task.solutions[0]}</submit>")[4]["success"]
    env.close()
    assert 0 < right < count


def test_every_condition_of_a_question_matters_on_some_hidden_database() -> None:
    """Of a query without one of its conditions, the judge sees the difference."""
    env, judged, passed = Sql(level=2, updates=0.0), 0, 0
    for seed in range(120):
        env.reset(seed=seed)
        solution = env.task.solutions[env.meaning]
        _, mark, tail = solution.partition(" WHERE ")
        condition = tail.split(" AND ")[0].split(" ORDER BY ")[0].split(" GROUP BY ")[0].rstrip(")")
        if not mark or "(" in condition or " WHERE " in tail:
            continue
        weaker = solution.replace(condition, "1", 1)
        judged += 1
        passed += is_right_answer(env._database_seen, env._contents(), solution, weaker, env.task.is_ordered)
    env.close()
    assert judged > 40 and passed <= judged // 20


def test_the_bounds_of_a_question_and_the_case_without_rows_matter_on_some_hidden_database() -> None:
    """Of a query with another sign, or without its value for no rows, the judge sees the difference."""
    env, judged, passed = Sql(level=1, updates=0.0), 0, 0
    for seed in range(100):
        env.reset(seed=seed)
        solution = env.task.solutions[0]
        others = [re.sub(r"COALESCE\((SUM\(.*?\)), 0\)", r"\1", solution)]
        others += [solution.replace(sign, other, 1) for sign, other in SIGNS if sign in solution]
        for other in others:
            if other != solution:
                judged += 1
                passed += is_right_answer(env._database_seen, env._contents(), solution, other, env.task.is_ordered)
                env.reset(seed=seed)
    env.close()
    assert judged > 40 and passed <= judged // 10
