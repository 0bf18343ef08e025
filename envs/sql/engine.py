"""A database that runs statements written by models, within limits.

Statements run in this process, in a database in memory. SQLite has no way to files, programs or other databases but
those that its authorizer is asked about, and the authorizer knows only what these tasks need: reading and, in updates,
changing the rows of their own tables, and functions whose results depend on their arguments alone. Time is bounded by
a number of instructions, memory by the lengths of values and results, the number of pages and again the instructions;
how large a statement may become is bounded before SQLite reads it, because expanding its selects is not counted. What
remains is a fault of SQLite itself: where that matters, run the whole program in a container.

Every bound is a count and none a time, so that equal statements have equal results on a busy machine too.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.sql.contents import Rows
from turngym.envs.sql.dates import DATES, DateError
from turngym.envs.sql.domains import DOMAINS, ROLES
from turngym.envs.sql.expansion import is_too_large
from turngym.envs.sql.schema import VARIANTS, Row, Schema

LONGEST_STATEMENT = 4000
MOST_ROWS = 2000
"""Rows of a result that are read; with more, a statement fails."""
_TICK, _TICKS = 1000, 400
"""Instructions between two looks at the budget, and the number of looks."""
_MOST_BYTES, _NUMBER_BYTES = 1_000_000, 8
"""Size of a result that is read, and of each number in it."""
_TEXTS = (str, bytes)
_PAGES = 256
_KEPT = 20
"""Prepared statements that are kept: those of this class, a solution, and few of models, which may be large."""
# fmt: off
FUNCTIONS = frozenset((
    "abs", "avg", "cast", "coalesce", "count", "cume_dist", "dense_rank", "first_value", "glob", "group_concat", "iif",
    "ifnull", "instr", "lag", "last_value", "lead", "length", "like", "lower", "ltrim", "max", "min", "nth_value",
    "ntile", "nullif", "percent_rank", "rank", "replace", "round", "row_number", "rtrim", "sign", "substr",
    "substring", "sum", "total", "trim", "typeof", "upper", *DATES,
))
"""Functions that statements may call."""
_LIMITS: Mapping[str, int] = {
    "LENGTH": 2000, "SQL_LENGTH": LONGEST_STATEMENT * 4 + 32, "COLUMN": 64, "EXPR_DEPTH": 60, "COMPOUND_SELECT": 12,
    "VDBE_OP": 25_000, "FUNCTION_ARG": 16, "ATTACHED": 0, "LIKE_PATTERN_LENGTH": 24, "VARIABLE_NUMBER": 64,
    "TRIGGER_DEPTH": 1, "WORKER_THREADS": 0,
}
# fmt: on
_NUMBERS = {name: getattr(sqlite3, f"SQLITE_LIMIT_{name}") for name in _LIMITS}
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
_WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_PRAGMAS = ("table_info", "foreign_key_list")
_CATALOGUE = ("sqlite_master", "sqlite_schema")
_LONGEST_ERROR = 300
_TOO_LARGE = "it is too large: use fewer selects inside selects, or fewer columns of them"
Content: TypeAlias = Mapping[str, Sequence[Row]]
"""Role -> all rows, by id."""


class Ran(NamedTuple):
    """Result of a statement.

    Args:
        columns: Names of the columns; empty where it returns no rows.
        rows: The rows.
        changed: Number of rows that it changed.
        is_write: Whether it could change rows.
        problem: Why it failed; empty if it did not.
        is_undone: Whether all earlier changes are undone with it.
    """

    columns: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    changed: int = 0
    is_write: bool = False
    problem: str = ""
    is_undone: bool = False


class Database:
    """A database with the tables of a schema.

    Args:
        schema: The schema.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._tables = frozenset(schema.tables.values())
        self._mode, self._refused, self._left, self._is_write = "own", "", 0, False
        self._rows: Rows = {}
        self._numbers = itertools.count()
        self._written = set[str]()
        self._link = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=_KEPT)
        for pragma in ("temp_store = 2", f"max_page_count = {_PAGES}", "foreign_keys = 1"):
            self._link.execute(f"PRAGMA {pragma}")
        for name, function in DATES.items():
            self._link.create_function(name, -1, function, deterministic=True)
        for statement in schema.ddl:
            self._link.execute(statement)
        for name, limit in _LIMITS.items():
            self._link.setlimit(_NUMBERS[name], limit)
        self._link.set_authorizer(self._allowed)
        self._link.set_progress_handler(self._tick, _TICK)

    def close(self) -> None:
        """Remove the database."""
        self._link.close()

    def fill(self, rows: Rows) -> None:
        """Replace all rows, in a transaction that is never committed."""
        self._own()
        self._rows = rows
        if self._link.in_transaction:
            self._link.execute("ROLLBACK")
        self._link.execute("BEGIN")
        for role in ROLES:
            self._link.executemany(self.schema.inserts[role], rows[role])
        self._link.execute("SAVEPOINT filled")

    def undo(self) -> None:
        """Undo every change since the database was filled."""
        self._own()
        if self._link.in_transaction:
            self._link.execute("ROLLBACK TO filled")
        else:  # SQLite itself has undone everything
            self.fill(self._rows)

    @property
    def start(self) -> Content:
        """All rows as the database was filled with them."""
        return self._rows

    def content(self, roles: Sequence[str] = ROLES) -> Content:
        """Return all rows, or those of some roles."""
        self._own()
        tables = self.schema.tables
        return {role: self._link.execute(f"SELECT * FROM {tables[role]} ORDER BY id").fetchall() for role in roles}

    def new_number(self) -> int:
        """Return a number for statements that are prepared together; see :meth:`run` and :meth:`written`."""
        self._written.clear()
        return next(self._numbers)

    def written(self) -> list[str]:
        """Return the roles of the tables that statements prepared since the last new number write to."""
        return [role for role in ROLES if self.schema.tables[role] in self._written]

    def solve(self, solution: str, number: int | None = None) -> Ran:
        """Run the statement of a task that is right, without limits; with a number as in :meth:`run`."""
        self._own()
        before = self._link.total_changes
        rows = self._link.execute(solution if number is None else f"/*{number}*/{solution}").fetchall()
        return Ran(rows=rows, changed=self._link.total_changes - before)

    def run(self, statement: str, may_write: bool, number: int | None = None) -> Ran:
        """Run one statement of a model; any text at all.

        Args:
            statement: The statement.
            may_write: Whether it may change rows.
            number: A number of :meth:`new_number`, with which an equal statement is prepared only once; only for
                statements without a problem so far.
        """
        text = statement.encode("utf8", "replace").decode().strip()
        if problem := problem_with(text):
            return Ran(problem=problem)
        self._own()
        if may_write:
            self._link.execute("SAVEPOINT statement")
        self._mode, self._refused, self._left, self._is_write = "write" if may_write else "read", "", _TICKS, False
        try:
            place = self.new_number() if number is None else number
            found = self._fetched(f"/*{place}*/{text}")  # equal texts are prepared, and asked about, once
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            found = Ran(problem=self._told(error))
        except MemoryError:  # SQLite gives this for too many instructions, too
            found = Ran(problem=_TOO_LARGE)
        return self._ended(found) if may_write else found

    def _fetched(self, text: str) -> Ran:
        before = self._link.total_changes
        cursor = self._link.execute(text)
        rows, left = list[Row](), _MOST_BYTES
        for row in cursor:
            rows.append(row)
            left -= sum([len(each) if isinstance(each, _TEXTS) else _NUMBER_BYTES for each in row])
            if left < 0 or len(rows) > MOST_ROWS:
                cursor.close()
                return Ran(
                    problem="the result is too large" if left < 0 else f"the result has more than {MOST_ROWS} rows"
                )
        columns = tuple(str(each[0]) for each in cursor.description or ())
        return Ran(columns, rows, self._link.total_changes - before, self._is_write)

    def _ended(self, found: Ran) -> Ran:
        """End the savepoint of a statement; SQLite itself undoes all changes if one that writes is stopped."""
        self._own()
        if not self._link.in_transaction:
            self.undo()
            return found._replace(problem=found.problem or "it undid the transaction", is_undone=True)
        if found.problem:
            self._link.execute("ROLLBACK TO statement")
        self._link.execute("RELEASE statement")
        return found

    def _own(self) -> None:
        self._mode, self._left = "own", -1

    def _tick(self) -> int:
        """Return whether to stop: the budget of a statement is used up."""
        if self._mode == "own":
            return 0
        self._left -= 1
        return int(self._left <= 0)

    def _told(self, error: Exception) -> str:
        if self._refused:
            return self._refused
        if self._left <= 0:
            return "it takes too long"
        if isinstance(error.__cause__, DateError) or "user-defined function" in str(error):
            return "a date function was given no date, or one that depends on the clock: dates are texts YYYY-MM-DD"
        if "one statement at a time" in str(error):
            return "only one statement at a time"
        return harmless(cut(str(error), _LONGEST_ERROR))

    def _allowed(self, action: int, one: str | None, two: str | None, database: str | None, inner: str | None) -> int:
        if action in _WRITES and one:
            self._written.add(one)
        if self._mode == "own" or (action == sqlite3.SQLITE_READ and one in self._tables and not self._refused):
            return sqlite3.SQLITE_OK
        if not self._refused:
            self._refused = self._refusal(action, one or "", two or "")
        return sqlite3.SQLITE_DENY if self._refused else sqlite3.SQLITE_OK

    def _refusal(self, action: int, one: str, two: str) -> str:
        """Return why an action of SQLite is refused; empty if it is not."""
        if action in _READS:
            return ""
        if action == sqlite3.SQLITE_READ:
            known = one in self._tables or one in _CATALOGUE or not two
            return "" if known else f"there is no table {one[:60]!r}"
        if action == sqlite3.SQLITE_FUNCTION:
            name = two.lower()
            return "" if name in FUNCTIONS else f"the function {name[:60]} is not available"
        if action == sqlite3.SQLITE_PRAGMA and one.lower() in _PRAGMAS:
            return ""
        if action in _WRITES and one in self._tables:
            self._is_write = True
            return "" if self._mode == "write" else "this task is a question, in which nothing may be changed"
        return "only SELECT, INSERT, UPDATE and DELETE on the rows of the tables are possible"


_IDLE: dict[tuple[int, int, int], Database] = {}
_MOST_IDLE = len(DOMAINS) * VARIANTS
"""Number of databases kept for reuse, one for each schema of a level: creating one costs more than filling it twice."""


def borrow(schema: Schema) -> Database:
    """Return a database with the tables of a schema, and any content."""
    return _IDLE.pop(schema.key, None) or Database(schema)


def give_back(database: Database) -> None:
    """Keep a database for its next use, or remove it if enough are kept."""
    if len(_IDLE) >= _MOST_IDLE or _IDLE.setdefault(database.schema.key, database) is not database:
        database.close()


def problem_with(text: str) -> str:
    """Return why a statement is not given to SQLite at all; empty if it is.

    >>> problem_with("SELECT 1")
    ''
    >>> problem_with("WITH a AS (SELECT 1), b AS (SELECT * FROM a, a, a), c AS (SELECT * FROM b, b, b) SELECT * FROM " +
    ...     ", ".join("c" * 99))
    'it is too large: use fewer selects inside selects, or fewer columns of them'
    """
    if not text or "\0" in text:
        return "it is empty, or has a NUL"
    if len(text) > LONGEST_STATEMENT:
        return f"it has more than {LONGEST_STATEMENT} characters"
    return _TOO_LARGE if is_too_large(text) else ""


def literal(value: Any) -> str:
    """Return a cell as agents read it.

    >>> [literal(each) for each in (None, 3, 2.5, 1 / 3, "Max O'Dea", b"x")]
    ['NULL', '3', '2.5', '0.333333', "'Max O''Dea'", "X'78'"]
    """
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return repr(round(value, 6))
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
