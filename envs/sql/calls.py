"""Calls of a database: notation, native tools, and how results are shown."""

from __future__ import annotations

from turngym.envs.parsing.calls import Call, Calls, cut, harmless
from turngym.envs.sql.engine import Ran, literal
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, find_call, read_call

TABLES, DESCRIBE, SQL, ASK, ROLLBACK, SUBMIT = "tables", "describe", "sql", "ask", "rollback", "submit"
_FIELDS = {TABLES: "", DESCRIBE: "table", SQL: "statement", ASK: "question", ROLLBACK: "", SUBMIT: "query"}
_TEXTS = {
    TABLES: "List the tables.",
    DESCRIBE: "Describe the columns of a table.",
    SQL: "Run one statement.",
    ASK: "Ask the user what a word of the request means.",
    ROLLBACK: "Undo all your changes.",
    SUBMIT: "Submit the query that answers a question; for a change, submit an empty text when it is made.",
}
_EMPTY = "text"
"""Field in JSON of a call without an argument."""
CALLS = Calls(
    {name: field or _EMPTY for name, field in _FIELDS.items()},
    {
        "tags": "write one of " + ", ".join(f"<{name}>{field}</{name}>" for name, field in _FIELDS.items()),
        "json": 'write {"tool": "sql", "statement": "..."} or another tool',
    },
)
_OPTIONAL = (SUBMIT,)
_LONGEST_PROBLEM, _SHOWN_ROWS, _LONGEST_CELL = 1000, 20, 200


def _tool(name: str, field: str) -> Tool:
    parameters = {"type": "object", "properties": {field: {"type": "string"}} if field else {}}
    required = {"required": [field]} if field and name not in _OPTIONAL else {}
    return Tool(name, _TEXTS[name], {**parameters, **required, "additionalProperties": False}, str)


TOOLS = {name: _tool(name, field) for name, field in _FIELDS.items()}
NOTATION = "\n".join(f"{f'<{name}>{field.upper()}</{name}>':<32}{_TEXTS[name]}" for name, field in _FIELDS.items())


def read_action(action: str, form: str) -> Call:
    """Return the call in an action; with ``form="tags"``, native calls are read too.

    >>> read_action("Let me see. <sql>SELECT 1</sql>", "tags")
    Call(tool='sql', content='SELECT 1', problem='')
    >>> read_action('<tool_call>{"name": "describe", "arguments": {"table": "loans"}}</tool_call>', "tags").content
    'loans'
    """
    if form == "tags" and action.startswith(CALL_MARK):
        found, arguments, problem = read_call(find_call(action) or "", TOOLS)
        if found is None:
            return Call("", problem=harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM)))
        return Call(found.name, str(arguments.get(_FIELDS[found.name], "")).strip())
    call = CALLS.read(action, form)
    return call._replace(content=call.content.strip())


def result_text(ran: Ran, is_update: bool, most: int) -> str:
    """Return what an agent sees of a statement.

    >>> print(result_text(Ran(("id", "name"), [(4, "Ilva"), (9, None)]), False, 1000))
    2 rows: id, name
    (4, 'Ilva')
    (9, NULL)
    """
    if ran.problem:
        return f"Error: {ran.problem}.{' All your changes are undone.' if ran.is_undone else ''}"
    if not ran.columns:
        return f"{_counted(ran.changed, 'row')} changed."
    lines = [f"{_counted(len(ran.rows), 'row')}: {cut(', '.join(ran.columns), _LONGEST_CELL)}"]
    for row in ran.rows[:_SHOWN_ROWS]:
        lines.append(f"({', '.join(cut(literal(value), _LONGEST_CELL) for value in row)})")
    if len(ran.rows) > _SHOWN_ROWS:
        lines.append(f"... and {len(ran.rows) - _SHOWN_ROWS} more")
    return harmless(cut("\n".join(lines), most))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
