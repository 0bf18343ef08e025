"""Repo: repair, complete and adapt generated repositories."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from turngym.envs.core import MaxTurns
from turngym.envs.instances import canonical_text
from turngym.envs.parsing.calls import Call, cut, harmless
from turngym.envs.settings import worded
from turngym.envs.tools.harbor.box import Ran
from turngym.envs.tools.harbor.calls import BASH, CALLS, SUBMIT, TOOLS, output_text, read_action
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.repo.defects import KINDS, Sketch, drawn_sketch
from turngym.envs.tools.repo.file_tools import ALL_TOOLS, EDIT, FILE_TOOLS, Problem
from turngym.envs.tools.repo.judge import LIMITS, Judge
from turngym.envs.tools.repo.task import RepoTask, made_task
from turngym.envs.tools.terminal.machine import require_programs
from turngym.envs.tools.terminal.shell_env import ShellEnv
from turngym.envs.tools.terminal.task import ROOT, Draw
from turngym.envs.tools.tool_schema import ToolSet, find_call, read_call, write_call
from turngym.envs.tools.workbench import shared_sandbox
from turngym.envs.validation import require_running
from turngym.options import between, one_of
from turngym.seeding import stream

ALL = "all"
_PROGRAMS = ("bash", "find", "git", "grep", "python3", "sed")
_TESTS = f"cd /{ROOT}; git log --oneline | head -n 20; python3 -m unittest 2>&1 | grep -E '^(OK|FAIL|ERROR)'"
_LONGEST_PROBLEM = 1000
_CLOCKED = re.compile(r"^(Ran \d+ tests? in )\d+\.\d+s$", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_ABOUT = """The repository is in /{root}; `python3 -m unittest` runs its tests. Each command runs in a new bash: \
files, the folder and exported variables stay. There is no terminal and no network. A command has {seconds:g} seconds, \
and you see at most {output} characters of what a call returns. In the end, hidden tests judge the modules of the \
package; changes of tests and of vendored modules are of no account. You have {turns} turns."""
_SHELL_RULES = """Work on a repository in a shell. You may think first; then write one of:
{bash}
{submit}  (when you are done)
{about}"""
_TOOL_RULES = """Work on a repository with tools. You may think first; then write one call, such as:
{calls}
Tools:
{tools}
{about}"""
_NATIVE_RULES = "Work on a repository. You may think first; then call a tool. {about}"


class Repo(ShellEnv[Sketch]):
    """Repair, complete or adapt a generated repository: modules that import each other, tests, and a history in git.

    A task is one of five kinds: faults in one module or several, a function whose body was lost, a change that a merge
    has lost, a vendored module whose interface has changed, and an issue that asks for a feature. Hidden test cases
    judge the sources of the package in a separate sandbox, on inputs that the visible tests do not have; expected
    results never enter it. The episode terminates with ``submit``, and is judged after the last turn too.

    The reward is 1 if all hidden cases pass and 0 for anything else, or with ``reward="dense"`` the change of the
    progress. Progress is the share of the cases that failed at the start and pass now, where each other case that fails
    counts as one more that failed. Commands run in Bubblewrap on the programs of this machine. Snapshots hold all
    files. Splits share no package: instances are told apart by package, modules and names.
    """

    class Options(ShellEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: the number of modules and faults, whether visible tests fail, and what the task says of them."""
        kind: Annotated[str, one_of(ALL, *KINDS)] = ALL
        """Kind of what is wrong; ``"all"`` draws it."""
        tools: Literal["files", "shell"] = "files"
        """``"files"`` for tools to view, search and edit, besides the shell; ``"shell"`` for the shell alone."""
        max_turns: MaxTurns = 30

    options: Options
    file_options = worded("kind", "tools", "reward")

    def setup(self) -> None:
        require_programs("turngym/Repo-v0", _PROGRAMS)
        super().setup()
        options = self.options
        self._sandbox = shared_sandbox("bubblewrap", LIMITS)
        self._tools = TOOLS if options.tools == "shell" else ALL_TOOLS
        about = _ABOUT.format(seconds=options.seconds, output=options.output, turns=self.max_turns, root=ROOT)
        schemas = tuple(each.schema for each in self._tools.values())
        self.native_tools = ToolSet(schemas, _NATIVE_RULES.format(about=about))
        bash, submit = CALLS.write(BASH, "command", "tags"), CALLS.write(SUBMIT, "", "tags")
        if options.tools == "shell":
            self.instructions = _SHELL_RULES.format(bash=bash, submit=submit, about=about)
        else:
            calls = "\n".join((write_call("search", {"text": "import"}), bash, submit))
            tools = "\n".join(json.dumps(schema) for schema in schemas)
            self.instructions = _TOOL_RULES.format(calls=calls, tools=tools, about=about)

    def make(self, number: int) -> Sketch:
        return _sketch(number, self.options.level, self.options.kind)

    def text_of(self, made: Sketch) -> str:
        """Return kind, package, modules and names: what is wrong is of no account, so that splits share no package."""
        plan = made.plan
        return canonical_text([made.kind, plan.package, list(plan.names), dict(plan.values)])

    def enter(self, made: Sketch) -> tuple[Mapping[str, Entry], str]:
        self._task = _task(self._number, self.options.level, self.options.kind)
        self._judge_of_task = Judge(self._task, self._sandbox)
        return self._task.files, harmless(self._task.goal)

    def judge(self, files: Mapping[str, Entry]) -> tuple[bool, float]:
        return self._judge_of_task.verdict(files)

    def read(self, action: str) -> Call:
        text = find_call(action)
        if text is None:
            return read_action(action, "tags")
        tool, arguments, problem = read_call(text, self._tools)
        if tool is None:
            return Call("", problem=harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM)))
        if tool.name in FILE_TOOLS:
            return Call(tool.name, json.dumps(arguments))
        command = str(arguments.get("command", ""))
        if tool.name == BASH and ("\0" in command or not command.strip()):
            return Call("", problem="the command is empty, or has a NUL")
        return Call(tool.name, command)

    def use(self, call: Call) -> str:
        if self._machine.tree is None:
            return "The machine holds too many files: remove some first."
        try:
            text = FILE_TOOLS[call.tool].use(self._machine.files(), self._write, json.loads(call.content))
        except Problem as problem:
            text = f"Nothing was done: {problem}."
        return f"<output>\n{harmless(cut(text, self.options.output))}\n</output>"

    def _write(self, path: str, data: bytes) -> None:
        self._machine.write(path, data, self.turn + 1)

    def shown(self, ran: Ran) -> str:
        """Return what an agent sees of a command; times of tests and addresses, which differ, are left out."""
        output = _ADDRESS.sub(" at 0x...", _CLOCKED.sub(r"\g<1>0.000s", ran.output))
        return output_text(ran._replace(output=output), self.options.output)

    def turn_columns(self) -> Mapping[str, float | str]:
        return {"kind": self._task.kind}

    @property
    def task(self) -> RepoTask:
        """The task with its hidden tests and sources; not for agents."""
        return self._task

    def expert_action(self) -> str:
        """Return a look at the tests, the next change to the sources without the defect, or ``submit``.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        look = f"{BASH} {_TESTS}"
        done = [call for call, _ in self._log]
        if not done:
            return CALLS.write(BASH, _TESTS, "tags")
        files = self._machine.files()
        for path, wanted in self._task.original.items():
            entry = files.get(path, Entry("file"))
            text = entry.data.decode("utf8", "replace") if entry.kind == "file" else ""
            if text != wanted:
                return self._change(path, text, wanted)
        return CALLS.write(SUBMIT, "", "tags") if done[-1] == look else CALLS.write(BASH, _TESTS, "tags")

    def _change(self, path: str, text: str, wanted: str) -> str:
        if self.options.tools == "shell":
            return CALLS.write(BASH, f"cat > /{ROOT}/{path} <<'END'\n{wanted}END", "tags")
        arguments: dict[str, Any] = {"path": path, **_first_change(text, wanted)}
        return write_call(EDIT, arguments)


def _sketch(number: int, level: int, kind: str) -> Sketch:
    draw = Draw(stream("repo", number), level)
    return drawn_sketch(draw, draw.pick(list(KINDS)) if kind == ALL else kind)


@lru_cache(maxsize=32)
def _task(number: int, level: int, kind: str) -> RepoTask:
    """Return the task of an instance, which several episodes may play."""
    return made_task(_sketch(number, level, kind), level)


def _first_change(text: str, wanted: str) -> dict[str, str]:
    """Return the first difference of two texts as old and new lines, with those around that make the old unique."""
    old, new = text.splitlines(keepends=True), wanted.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    _, low, high, start, end = next(each for each in matcher.get_opcodes() if each[0] != "equal")
    added = "".join(new[start:end])
    before = after = 0
    while True:
        first, last = max(0, low - before), min(len(old), high + after)
        found = "".join(old[first:last])
        if found and (text.count(found) == 1 or (first, last) == (0, len(old))):
            return {"old": found, "new": "".join(old[first:low]) + added + "".join(old[high:last])}
        if (first, last) == (0, len(old)):
            return {"old": "", "new": wanted}
        before, after = before + 1, after + 1
