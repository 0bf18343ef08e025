"""Calls of a shell: notation, native tools, and how output is shown."""

from __future__ import annotations

from turngym.envs.parsing.calls import Call, Calls, cut, harmless
from turngym.envs.tools.harbor.box import Ran
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, find_call, read_call

BASH, SUBMIT = "bash", "submit"
CALLS = Calls(
    {BASH: "command", SUBMIT: "text"},
    {
        "tags": "write <bash>command</bash> to run a command or <submit></submit> when you are done",
        "json": 'write {"tool": "bash", "command": "..."} or {"tool": "submit", "text": ""}',
    },
)
_PLAIN = {"type": "object", "additionalProperties": False}
TOOLS = {
    BASH: Tool(
        BASH,
        "Run a command in a new shell.",
        {**_PLAIN, "properties": {"command": {"type": "string"}}, "required": ["command"]},
        str,
    ),
    SUBMIT: Tool(SUBMIT, "Say that the task is done.", {**_PLAIN, "properties": {}}, str),
}
_LONGEST_PROBLEM = 1000


def read_action(action: str, form: str) -> Call:
    """Return the call in an action; with ``form="tags"``, native calls are read too.

    >>> read_action("Look. <bash>ls</bash>", "tags")
    Call(tool='bash', content='ls', problem='')
    >>> read_action("<bash> </bash>", "tags").problem
    'the command is empty, or has a NUL'
    """
    if form == "tags" and action.startswith(CALL_MARK):
        found, arguments, problem = read_call(find_call(action) or "", TOOLS)
        if found is None:
            return Call("", problem=harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM)))
        call = Call(found.name, str(arguments.get("command", "")))
    else:
        call = CALLS.read(action, form)
    if call.tool == BASH and ("\0" in call.content or not call.content.strip()):
        return Call("", problem="the command is empty, or has a NUL")
    return call


def output_text(ran: Ran, most: int) -> str:
    """Return what an agent sees of a command: output, and how it ended unless it was well."""
    told = harmless(cut(ran.output.rstrip("\n"), most)) or "There was no output."
    end = "\nIt was stopped: out of time." if ran.is_late else f"\nExit code: {ran.code}" if ran.code else ""
    return f"<output>\n{told}{end}\n</output>"
