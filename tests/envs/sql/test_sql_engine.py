"""Statements of models: within limits, without side effects, and with results that depend on nothing else."""

import itertools
import sqlite3
import sys
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from turngym.envs.sql.contents import rows_of
from turngym.envs.sql.engine import FUNCTIONS, MOST_ROWS, Database
from turngym.envs.sql.expansion import is_too_large
from turngym.envs.sql.judge import is_right_update
from turngym.envs.sql.schema import schema_of


@pytest.fixture
def database() -> Any:
    found = Database(schema_of(0, 0, 1))
    found.fill(rows_of(found.schema, 0, {}))
    yield found
    found.close()


T = schema_of(0, 0, 1).tables["event"]
NAMES = ", ".join("c" * 9)
ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 'a' UNION ALL SELECT x || 'aaaaaaaa' FROM n) SELECT max(length(x)) FROM n",
    f"SELECT count(*) FROM {', '.join(f'{T} t{k}' for k in range(12))}",
    f"SELECT group_concat(a.id) FROM {T} a, {T} b, {T} c, {T} d, {T} e",
    f"SELECT * FROM {T} a, {T} b, {T} c ORDER BY random()",
    "WITH RECURSIVE n(x, y) AS (SELECT 1, 'a' UNION SELECT x + 1, replace(y, 'a', 'aa') FROM n) SELECT * FROM n",
    f"SELECT count(*) FROM {T} WHERE replace('{'a' * 900}', 'a', '{'b' * 900}') LIKE '{'%a' * 40}b'",
    f"SELECT 1 WHERE '{'a' * 1900}' LIKE '{'%a' * 49}b'",
    f"SELECT {'(' * 500}1{')' * 500}",
    f"SELECT {' + '.join('1' * 1000)}",
    f"SELECT 1{' UNION SELECT 1' * 100}",
    f"SELECT * FROM {T} WHERE id IN ({', '.join('1' * 1500)})",
    "WITH " + ", ".join(f"c{k + 1} AS (SELECT * FROM c{k}, c{k})" for k in range(40)) + " SELECT * FROM c40",
    'WITH c0 AS (SELECT 1), "c1"(x) AS (SELECT * FROM [c0], `c0`), c2 AS NOT MATERIALIZED (SELECT * FROM '
    + ", ".join(("C1", '"c1"', "[c1]", "'c1'") * 5)
    + f"), c AS (SELECT * FROM c2, c2, c2) SELECT * FROM {NAMES}",
    "SELECT " + ", ".join(f"(SELECT count(*) FROM {T} a{k}, {T} b{k}, {T} c{k})" for k in range(40)),
)
"""Statements that take forever, or all memory, where nothing stops them."""


@pytest.mark.parametrize("statement", ENDLESS, ids=range(len(ENDLESS)))
def test_statements_without_end_are_stopped_in_bounded_memory(database: Database, statement: str) -> None:
    tracemalloc.start()
    ran = database.run(statement, may_write=True)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert ran.problem or len(ran.rows) <= MOST_ROWS
    assert database.run("SELECT 1", may_write=False).rows == [(1,)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ATTACH 'x.db' AS y", "only SELECT"),
        ("DETACH main", "only SELECT"),
        ("VACUUM INTO 'x.db'", "only SELECT|cannot VACUUM"),
        ("SELECT load_extension('x')", "load_extension is not available"),
        ("PRAGMA journal_mode = wal", "only SELECT"),
        ("PRAGMA temp_store_directory = '/tmp'", "only SELECT"),
        ("PRAGMA foreign_keys = 0", "only SELECT"),
        ("SELECT randomblob(1000000000)", "randomblob is not available"),
        ("SELECT random()", "random is not available"),
        ("SELECT zeroblob(1000000000)", "zeroblob is not available"),
        ("SELECT printf('%1000000000d', 1)", "printf is not available"),
        ("SELECT CURRENT_TIMESTAMP", "current_timestamp is not available"),
        ("SELECT CURRENT_DATE", "current_date is not available"),
        ("SELECT date('now')", "a date function was given"),
        ("SELECT date('n' || 'ow')", "a date function was given"),
        ("SELECT date(x'6e6f77')", "a date function was given"),
        ("SELECT date(cast(x'6e6f7700' as text))", "a date function was given"),
        ("SELECT date('now\n')", "a date function was given"),
        ("SELECT date('2024-01-01', x'7574632020')", "a date function was given"),
        ("SELECT strftime(x'2559', '2024-01-01')", "a date function was given"),
        ("SELECT date()", "a date function was given"),
        ("SELECT strftime('%Y')", "a date function was given"),
        ("SELECT date('2024-01-01', 'localtime')", "a date function was given"),
        ("SELECT julianday('subsec')", "a date function was given"),
        ("SELECT sqlite_version()", "sqlite_version is not available"),
        ("SELECT last_insert_rowid()", "last_insert_rowid is not available"),
        ("SELECT pgno FROM sqlite_dbpage", "there is no table|no such table"),
        ("SELECT sql FROM sqlite_stmt", "."),
        ("SELECT value FROM json_each('[1]')", "."),
        ("CREATE TABLE x (y)", "only SELECT"),
        ("CREATE TEMP VIEW x AS SELECT 1", "only SELECT"),
        (f"CREATE TRIGGER x AFTER DELETE ON {T} BEGIN SELECT 1; END", "only SELECT"),
        (f"DROP TABLE {T}", "only SELECT"),
        (f"ALTER TABLE {T} RENAME TO x", "only SELECT"),
        ("COMMIT", "only SELECT"),
        ("ROLLBACK", "only SELECT"),
        ("RELEASE statement", "only SELECT"),
        ("ROLLBACK TO statement", "only SELECT"),
        ("DELETE FROM sqlite_master", "only SELECT|may not be modified"),
        ("SELECT 1; SELECT 2", "only one statement"),
        ("SELECT 1\0", "NUL"),
        ("", "empty"),
        ("SELECT '" + "a" * 5000 + "'", "more than 4000 characters"),
        ("SELECT \ud800", "."),
        ("SELECT x FROM nowhere", "no such table"),
    ],
)
def test_what_is_not_needed_is_refused(database: Database, statement: str, message: str) -> None:
    before = database.content()
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(database.run(statement, may_write=True).problem)
    assert database.content() == before


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("SELECT strftime('%Y-%m', '2024-03-05'), date('2024-02-28', '+1 day')", ("2024-03", "2024-02-29")),
        ("SELECT julianday('2024-03-05') - julianday('2024-03-01')", (4.0,)),
        ("SELECT date(julianday('2024-03-05') + 1), date(NULL), 'Harbor 12' LIKE '%harbor%'", ("2024-03-06", None, 1)),
        (
            "SELECT date('2024-03-05', 'start of month', '-1 day'), date('2024-03-05 10:00')",
            ("2024-02-29", "2024-03-05"),
        ),
        ("SELECT count(*) OVER (), sum(1), round(2.5), 'Ab' LIKE 'a%', upper('a')", (1, 1, 3.0, 1, "A")),
        ("WITH a(x) AS (SELECT 1) SELECT x FROM a", (1,)),
        ("WITH a AS (SELECT 1) SELECT count(*) FROM a", (1,)),
        ("SELECT count(*) FROM sqlite_master", (4,)),
    ],
)
def test_what_queries_need_works(database: Database, statement: str, row: tuple[Any, ...]) -> None:
    ran = database.run(statement, may_write=False)
    assert (ran.problem, list(ran.rows)) == ("", [row])


def nested(depth: int, width: int) -> str:
    """Return a text that SQLite expands to more than width ** depth names."""
    start, end = f"SELECT {'+'.join('y' * width)} AS y FROM (", ")"
    return start * depth + f"SELECT id AS y FROM {T}" + end * depth


def chained(names: Sequence[str], width: int) -> str:
    """Return a text whose WITH parts each use the one before."""
    parts = [f"{names[0]} AS (SELECT 1 AS y)"]
    parts += [
        f"{name} AS (SELECT 1 AS y FROM {' JOIN '.join([last] * width)})" for last, name in itertools.pairwise(names)
    ]
    return f"WITH {', '.join(parts)} SELECT count(*) FROM {names[-1]} WHERE 1"


@pytest.mark.parametrize(
    "statement",
    [
        nested(7, 4),
        nested(10, 5),
        chained([chr(each) for each in (0xA0, *range(0x2000, 0x200A))], 6),
        chained([f'"{each}"' for each in ".(),"] + ["where", "[[[a]", "`b``c`", "e", "f"], 6).replace(
            "where", '"where"'
        ),
        f"WITH a AS (SELECT y FROM b), b AS (SELECT y FROM a) SELECT y FROM {', '.join('a' * 9)}",
    ],
    ids=range(5),
)
def test_statements_that_grow_when_they_are_expanded_are_refused(database: Database, statement: str) -> None:
    assert "too large" in database.run(statement, may_write=True).problem
    assert database.run("SELECT 1", may_write=True).rows == [(1,)]


def test_selects_inside_selects_need_no_deep_stack() -> None:
    def below(frames: int) -> bool:
        return below(frames - 1) if frames else is_too_large("SELECT 1 FROM (" * 260)

    assert below(sys.getrecursionlimit() // 2)


@pytest.mark.parametrize(
    "start", ["* FROM (SELECT ", "* FROM t WHERE x IN (VALUES ", "WITH a AS (", "DELETE FROM t, ("]
)
def test_short_statements_with_one_select_are_small_however_they_are_read(start: str) -> None:
    stars = 360 - len(start)
    for inner in range(0, stars, 10):
        statement = "*" * (stars - inner) + start + "*" * inner
        assert not is_too_large(statement)
        assert not is_too_large(statement + " " * 360), "read as a long one"


def test_statements_that_sqlite_finds_too_large_are_refused(database: Database) -> None:
    """SQLite calls too many instructions a lack of memory."""
    calls = ", ".join(f"coalesce({', '.join('x' * 16)})" for _ in range(17))
    statement = f"SELECT {calls} FROM (SELECT {'+'.join(['id'] * 50)} AS x FROM {T})"
    assert not is_too_large(statement)
    assert "too large" in database.run(statement, may_write=True).problem
    assert database.run("SELECT 1", may_write=True).rows == [(1,)]


def test_parts_that_are_used_as_prefixes_of_columns_are_not_counted(database: Database) -> None:
    person = database.schema.tables["person"]
    statement = (
        f"WITH picked AS (SELECT e.id AS id, e.id % 3 AS owner FROM {T} e), totals AS (SELECT picked.owner AS owner, "
        "SUM(picked.id) AS total, COUNT(picked.id) AS n FROM picked GROUP BY picked.owner), ranked AS (SELECT "
        "totals.owner AS owner, totals.total AS total FROM totals ORDER BY totals.total DESC, totals.owner) "
        f"SELECT ranked.owner, ranked.total FROM ranked JOIN {person} p ORDER BY ranked.total DESC, ranked.owner"
    )
    assert not database.run(statement, may_write=False).problem


def test_large_results_are_not_read(database: Database) -> None:
    columns = ", ".join(["x"] * 63)
    statement = f"SELECT {columns} FROM (SELECT '{'a' * 1800}' || a.id AS x FROM {T} a, {T} b)"
    assert database.run(statement, may_write=False).problem == "the result is too large"
    assert "too complex" in database.run(f"SELECT 'a' LIKE '{'a' * 30}'", may_write=False).problem


def test_columns_are_listed(database: Database) -> None:
    assert len(database.run(f"PRAGMA table_info({T})", may_write=False).rows) == len(database.schema.columns["event"])
    assert len(database.run(f"PRAGMA foreign_key_list('{T}')", may_write=False).rows) == 2


def test_questions_change_nothing(database: Database) -> None:
    before = database.content()
    for statement in (f"DELETE FROM {T}", f"INSERT INTO {T} SELECT * FROM {T}", f"DELETE FROM {T} RETURNING id"):
        assert "nothing may be changed" in database.run(statement, may_write=False).problem
    assert database.content() == before


def test_a_change_of_another_table_in_a_hidden_database_is_found(database: Database) -> None:
    tables, region = database.schema.tables, database.schema.columns["place"]["region"]
    contents = [rows_of(database.schema, pattern, {}) for pattern in range(600, 610)]
    shown, hidden = ({row[0] for row in rows["place"]} for rows in (database.start, contents[3]))
    number, solution = min(hidden - shown), f"DELETE FROM {tables['event']} WHERE id % 2"
    for other, is_right in ((0, True), (number, False)):
        change = f"UPDATE {tables['place']} SET {region} = 'none' WHERE id = {other}"
        assert is_right_update(database, iter(contents), solution, [solution, change]) == is_right
        database.fill(rows_of(database.schema, 0, {}))


def test_failed_statements_leave_nothing_behind(database: Database) -> None:
    """Conflict clauses would keep a part of a statement, or undo the transaction."""
    before = database.content()
    ran = database.run(f"UPDATE OR FAIL {T} SET id = 1 - (id % 2)", may_write=True)
    assert ran.problem and not ran.is_undone and database.content() == before
    assert database.run(f"DELETE FROM {T} WHERE id % 2", may_write=True).changed
    ran = database.run(f"UPDATE OR ROLLBACK {T} SET id = 1", may_write=True)
    assert ran.problem and ran.is_undone and database.content() == before


def test_a_database_stays_small(database: Database) -> None:
    grow = f"INSERT INTO {T} SELECT NULL, a.{{}} FROM {T} a, {T} b, {T} c LIMIT 4000"
    names = list(database.schema.columns["event"].values())[1:]
    problems = [database.run(grow.format(", a.".join(names)), may_write=True).problem for _ in range(20)]
    assert any("full" in each for each in problems)


def test_every_function_that_is_allowed_is_known_or_newer_than_this_sqlite() -> None:
    link = sqlite3.connect(":memory:")
    known = {name for (name,) in link.execute("SELECT DISTINCT name FROM pragma_function_list")}
    link.close()
    assert FUNCTIONS - known <= {"cast", "iif", "sign", "substring"}
