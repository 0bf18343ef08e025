"""Sql: answer questions and make changes with SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.parsing.calls import Call
from turngym.envs.settings import worded
from turngym.envs.sql import calls
from turngym.envs.sql.calls import CALLS, NOTATION, TOOLS, read_action, result_text
from turngym.envs.sql.contents import MISSED, ON_BOUNDS, PATTERNS, PLAIN, Rows, rows_of
from turngym.envs.sql.domains import PLACE, ROLES
from turngym.envs.sql.engine import Content, Database, borrow, give_back
from turngym.envs.sql.judge import is_right_answer, is_right_update, share_of_changes, share_of_rows
from turngym.envs.sql.schema import Row, Schema
from turngym.envs.sql.task import Maker, Task
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.validation import NUMBERS, refuse_task, require_running, saved_number, saved_texts
from turngym.options import between
from turngym.types import JSONValue

_SHOWN = PATTERNS // 2
"""Patterns of contents that are shown; as many others are hidden."""
_FORMS = (ON_BOUNDS, MISSED, ON_BOUNDS)
"""Forms of the first hidden contents; the others are plain."""
_MOST_CHANGES = 8
"""Statements of a change: each is run on every hidden database, too."""
_CHANGING = (calls.SQL, calls.ROLLBACK, calls.ASK)
"""Calls after which the progress of a change may be another."""
_RULES = """Answer a question about a SQLite database, or make a change in it. You may think first; then write one of:
{notation}
{about}"""
_NATIVE_RULES = "Answer a question about a SQLite database, or make a change in it. You may think first. {about}"
_ABOUT = """A query, or for a change your statements, is also run on other databases with the same tables and columns \
but other rows, and must be right on each of them: names and days in the request hold everywhere, ids and results do \
not. Answers need exactly the columns that are asked for, in this order; the order of rows counts only where the \
request gives one. A change must leave every other value as it is. Names of columns may mislead: their descriptions \
are right. A word of the request may have several meanings: the user answers one question about it. Statements may not \
use the clock or random numbers. You have {turns} turns."""


class Sql(TextEnv[str]):
    """Answer questions about generated SQLite databases, and make changes in them.

    Schemas come from ten domains with drawn names, some of which mislead; contents have missing values, duplicates,
    equal names and columns that are out of date. Agents look at tables and run statements, in a transaction where the
    task is a change, and then submit. A query is judged by its rows on the database that is seen and on at least four
    others with other rows: as a multiset unless an order is asked for, numbers with a tolerance of one in a million. A
    change is judged by all rows of all tables after its statements have been run on each of these. Some requests have
    a word with several meanings; one question about it is answered.

    The reward is 1 for success and 0 for anything else, or with ``reward="dense"`` the change of the progress. Progress
    is the share of rows, or changes, that are right in the database that is seen; rows and changes that are not wanted
    count against it, and it is 0 as long as the meaning of the request is open.

    >>> env = Sql()
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> observation, reward
    ('You have submitted.', 1.0)
    """

    class Options(TextEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: kinds of requests, number of conditions, names that mislead, words with several meanings."""
        updates: Annotated[float, between(0.0, 1.0)] = 0.35
        """Share of tasks that are changes."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the change of the progress in every turn."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of calls."""
        output: Annotated[int, between(100, 100_000)] = 4000
        """Characters shown of a result: its beginning and its end."""
        max_turns: MaxTurns = 20

    options: Options
    file_options = worded("reward", "form")
    finds_action = True

    def setup(self) -> None:
        options = self.options
        self._maker = Maker(options.level, options.updates)
        self._seen: Database | None = None
        about = _ABOUT.format(turns=self.max_turns)
        notation = NOTATION if options.form == "tags" else self._json_notation()
        self.instructions = _RULES.format(notation=notation, about=about)
        if options.form == "tags":
            tools = tuple(each.schema for each in TOOLS.values())
            self.native_tools = ToolSet(tools, _NATIVE_RULES.format(about=about))

    def _json_notation(self) -> str:
        return "\n".join(f"{CALLS.write(name, '...', 'json')}  {each.description}" for name, each in TOOLS.items())

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        found = self.draw(
            lambda generator: self._maker.task(int(generator.integers(NUMBERS))), lambda found: found.text
        )
        self._enter(found, int(self.np_random.integers(NUMBERS)))
        return self._opening

    def _enter(self, task: Task, hidden: int) -> None:
        self._task, self._hidden = task, hidden
        self._seen = self._database(self._seen, task.schema)
        self._seen.fill(rows_of(task.schema, task.number % _SHOWN, task.named))
        self._log, self._changes = list[tuple[str, str]](), list[str]()
        kind = "Make this change" if task.is_update else "Answer this question"
        self._opening = f"{kind}: {task.request}"
        self._is_clear, self._done = not task.term, 0.0
        self._goal: list[Row] | Content | None = None

    @staticmethod
    def _database(known: Database | None, schema: Schema) -> Database:
        if known is not None and known.schema is schema:
            return known
        if known is not None:
            give_back(known)
        return borrow(schema)

    def _contents(self) -> Iterator[Rows]:
        """Yield hidden contents, each of them once."""
        task = self._task
        for place in range(_SHOWN):
            form = _FORMS[place] if place < len(_FORMS) else PLAIN
            yield rows_of(task.schema, _SHOWN + (self._hidden + place) % _SHOWN, task.named, task.bounds, form)

    @property
    def task(self) -> Task:
        """The task with its solutions; hidden from agents."""
        return self._task

    @property
    def meaning(self) -> int:
        """Place of the meaning of the request among those that it may have; hidden from agents."""
        return self._hidden % len(self._task.solutions)

    def apply_action(self, action: str) -> Outcome[str]:
        call, before = read_action(action, self.options.form), self._done
        if not call.tool:
            return _refused(f"That is no action; {call.problem}.")
        if call.tool == calls.SUBMIT:
            return self._submitted(call)
        problem = self._problem(call)
        if problem:
            return _refused(problem)
        self._perform(call)
        return Outcome(self._log[-1][1], self._done - before if self.options.reward == "dense" else 0.0)

    def _problem(self, call: Call) -> str:
        if call.tool == calls.DESCRIBE and self._task.schema.role_of(call.content) is None:
            return f"There is no table {call.content[:60]!r}."
        if call.tool == calls.ROLLBACK and not self._task.is_update:
            return "There is nothing to undo: the task is a question."
        if call.tool == calls.SQL and len(self._changes) >= _MOST_CHANGES:
            return f"A change has at most {_MOST_CHANGES} statements: submit yours, or undo them with rollback."
        return ""

    def _perform(self, call: Call) -> None:
        """Carry out a call that is possible, and add it to the log."""
        task = self._task
        if call.tool == calls.TABLES:
            shown = task.schema.listing
        elif call.tool == calls.DESCRIBE:
            shown = task.schema.texts[call.content]
        elif call.tool == calls.ASK:
            shown = self._answer(call.content)
        elif call.tool == calls.ROLLBACK:
            self._database_seen.undo()
            self._changes.clear()
            shown = "All your changes are undone."
        else:
            shown = self._ran(call.content)
        self._log.append((f"{call.tool} {call.content}", shown))
        if task.is_update and call.tool in _CHANGING:
            self._measure_changes()

    @property
    def _database_seen(self) -> Database:
        if self._seen is None:
            raise RuntimeError("no episode has begun")
        return self._seen

    def _ran(self, statement: str) -> str:
        task = self._task
        if task.is_update and self._is_clear:
            self._find_goal()  # as long as there is no change to undo for it
        ran = self._database_seen.run(statement, may_write=task.is_update)
        if ran.is_undone:
            self._changes.clear()
        if ran.is_write and not ran.problem:
            self._changes.append(statement)
        if not task.is_update and not ran.problem and self._is_clear:
            self._done = share_of_rows(self._rows_wanted(), ran.rows)
        return result_text(ran, task.is_update, self.options.output)

    def _answer(self, question: str) -> str:
        """Return the words of the user; only the first question about the word with several meanings counts."""
        task = self._task
        if not task.term:
            return "User: I mean it as I wrote it."
        if self._is_clear:
            return "User: I have told you what I mean."
        if task.term not in question.lower():
            return "User: Which word of my request do you mean?"
        self._is_clear = True
        return f"User: By {task.term} I mean those {task.meanings[self.meaning]}."

    def _rows_wanted(self) -> list[Row]:
        if not isinstance(self._goal, list):
            self._goal = list(self._database_seen.solve(self._solution).rows)
        return self._goal

    def _find_goal(self) -> Content:
        """Return the content that the solution gives, and leave the changes as they are."""
        if not isinstance(self._goal, dict):
            database, changes = self._database_seen, list(self._changes)
            if changes:
                database.undo()
            database.solve(self._solution)
            self._goal = database.content()
            database.undo()
            for each in changes:
                database.run(each, may_write=True)
        return self._goal

    def _measure_changes(self) -> None:
        if self._is_clear:
            database = self._database_seen
            self._done = share_of_changes(database.start, self._find_goal(), database.content())

    @property
    def _solution(self) -> str:
        return self._task.solutions[self.meaning]

    def _submitted(self, call: Call) -> Outcome[str]:
        task, before = self._task, self._done
        if task.is_update and call.content:
            return _refused("Run the statements of a change with sql, then submit an empty text.")
        if not task.is_update and not call.content:
            return _refused("Submit the query that answers the question.")
        base, contents, solution = self._database_seen, self._contents(), self._solution
        base.undo()
        if task.is_update:
            success = is_right_update(base, contents, solution, self._changes)
        else:
            success = is_right_answer(base, contents, solution, call.content, task.is_ordered)
        if success:
            self._done = 1.0
        reward = self._done - before if self.options.reward == "dense" else float(success)
        return Outcome("You have submitted.", reward, True, success)

    def anchor(self) -> str:
        return "\n".join([self._opening, *(part for pair in self._log for part in pair)])

    def progress(self) -> float:
        return self._done

    def turn_columns(self) -> Mapping[str, float | str]:
        return {"kind": "update" if self._task.is_update else "question"}

    def expert_action(self) -> str:
        """Return the next action of an expert that reads the descriptions, asks if a word is open, tries and submits.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        task, form = self._task, self.options.form
        done = {call for call, _ in self._log}
        looks = [Call(calls.TABLES), *(Call(calls.DESCRIBE, self._name(role)) for role in self._used())]
        looks += [Call(calls.ASK, f"What does {task.term} mean?")] if task.term else []
        for look in looks:
            if f"{look.tool} {look.content}" not in done:
                return CALLS.write(look.tool, look.content, form)
        if self._changes and self._changes != [self._solution]:
            return CALLS.write(calls.ROLLBACK, "", form)
        if not (self._changes if task.is_update else f"{calls.SQL} {self._solution}" in done):
            return CALLS.write(calls.SQL, self._solution, form)
        return CALLS.write(calls.SUBMIT, "" if task.is_update else self._solution, form)

    def _name(self, role: str) -> str:
        return self._task.schema.tables[role]

    def _used(self) -> list[str]:
        """Return the roles of the tables that any solution uses."""
        words = " ".join(self._task.solutions).replace("(", " ").split()
        return [role for role in ROLES if self._name(role) in words and role != PLACE]

    def resample_hidden(self) -> bool:
        """Draw other contents, and another meaning if the agent has not asked for it."""
        count = len(self._task.solutions)
        fresh = int(self.np_random.integers(NUMBERS // count)) * count
        if self._is_clear:
            fresh += self.meaning
        else:
            fresh += int(self.np_random.integers(count))
            self._goal = None
        self._hidden = fresh
        return True

    def save_state(self) -> JSONValue:
        return {"number": self._task.number, "hidden": self._hidden, "calls": [call for call, _ in self._log]}

    def load_state(self, state: JSONValue) -> None:
        task, hidden = self._maker.task(saved_number(state["number"])), saved_number(state["hidden"])
        if task.text != self.instance:
            raise ValueError("the instance is another one")
        read = [Call(*each.split(" ", 1)) for each in saved_texts(state["calls"], self.turn)]
        self._enter(task, hidden)
        for call in read:
            if call.tool not in TOOLS or call.tool == calls.SUBMIT or self._problem(call):
                raise ValueError(f"the call {call.tool[:40]!r}")
            self._perform(call)

    def close(self) -> None:
        """Give the database back."""
        if self._seen is not None:
            give_back(self._seen)
        self._seen = None
        super().close()


def _refused(problem: str) -> Outcome[str]:
    return Outcome(problem, action_is_valid=False)
