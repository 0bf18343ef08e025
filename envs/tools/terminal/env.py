"""Terminal: do tasks in a shell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.instances import canonical_text
from turngym.envs.settings import worded
from turngym.envs.tools.harbor.box import BoxError, Ran
from turngym.envs.tools.harbor.calls import BASH, CALLS, SUBMIT, TOOLS, output_text, read_action
from turngym.envs.tools.harbor.files import Entry, packed
from turngym.envs.tools.terminal.families import FAMILIES
from turngym.envs.tools.terminal.judge import Judge
from turngym.envs.tools.terminal.machine import Machine, require_programs
from turngym.envs.tools.terminal.task import ROOT, Draw, Task
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import SnapshotUnsupported
from turngym.options import between, one_of
from turngym.seeding import stream
from turngym.types import JSONValue

ALL = "all"
_NUMBERS = 2**40
_PROBE_SECONDS = 30.0
_KILLED = 137
_RULES = """Do tasks in a shell. You may think first; then write one of:
{bash}
{submit}  (when you are done)
{about}"""
_NATIVE_RULES = "Do tasks in a shell. You may think first; then call a tool: {about}"
_ABOUT = """Each command runs in a new bash: files, the folder and exported variables stay; other variables, \
functions and processes do not. There is no terminal and no network but the loopback interface. A command has \
{seconds:g} seconds, and you see at most {output} characters of what it prints. Everything below /{root} must be as \
the tasks want it and otherwise stay as it was; other folders, such as /tmp, are yours. The times of files are those \
of turns, a minute each; the clock and the numbers of processes differ between episodes. You have {turns} turns."""


class Terminal(TextEnv[str]):
    """Do generated tasks in a shell: with files, tables, archives, permissions, jobs, logs, git, make and a server.

    Tasks are judged by the files that are left: those that were asked for must be right, and all others as they were.
    What must run, such as a Makefile, runs in a fresh box on inputs that were never shown. The episode terminates with
    ``submit``, and is judged after the last turn too. The reward is 1 for success and 0 for anything else, or with
    ``reward="dense"`` the change of the progress. Progress is the share of files and other conditions that are right,
    where each change that was not asked for counts as one more that is not.

    Commands run in Bubblewrap on the programs of this machine. Snapshots hold all files, so that a restored episode
    continues equally but for the clock, numbers of processes and hard links.
    """

    class Options(TextEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: the number of files, lines and faults, and odd cases."""
        family: Annotated[str, one_of(ALL, *FAMILIES)] = ALL
        """Kind of the tasks; ``"all"`` draws it."""
        tasks: Annotated[int, between(1, 3)] = 1
        """Number of tasks in an episode."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the change of the progress in every turn."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of calls."""
        seconds: Annotated[float, between(0.1, 600)] = 10.0
        """Time of one command."""
        output: Annotated[int, between(100, 100_000)] = 4000
        """Characters shown of a command's output: its beginning and its end."""
        max_turns: MaxTurns = 20

    options: Options
    file_options = worded("family", "reward", "form")
    finds_action = True

    def setup(self) -> None:
        require_programs()
        options = self.options
        self._machine, self._prober = Machine(), Machine()
        about = _ABOUT.format(seconds=options.seconds, output=options.output, turns=self.max_turns, root=ROOT)
        bash, submit = (CALLS.write(name, text, options.form) for name, text in ((BASH, "command"), (SUBMIT, "")))
        self.instructions = _RULES.format(bash=bash, submit=submit, about=about)
        if options.form == "tags":
            schemas = tuple(each.schema for each in TOOLS.values())
            self.native_tools = ToolSet(schemas, _NATIVE_RULES.format(about=about))

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        number, tasks = self.draw(self._drawn, lambda found: _canonical(found[1]))
        self._enter(number, tasks)
        return self._opening

    def _drawn(self, generator: np.random.Generator) -> tuple[int, dict[str, Task]]:
        number = int(generator.integers(_NUMBERS))
        return number, self._made(number)

    def _made(self, number: int) -> dict[str, Task]:
        """Return folder -> task."""
        options = self.options
        draw = Draw(stream("terminal", number), options.level)
        names = list(FAMILIES) if options.family == ALL else [options.family]
        chosen = draw.some(names, options.tasks) if len(names) > 1 else names * options.tasks
        return {f"{name}{place + 1}": FAMILIES[name](draw) for place, name in enumerate(chosen)}

    def _enter(self, number: int, tasks: dict[str, Task], tree: str = "") -> None:
        self._number, self._tasks, self._log = number, tasks, list[tuple[str, str]]()
        files = {name: Entry("folder", 0o755) for name in tasks}
        for name, task in tasks.items():
            files |= {f"{name}/{path}": entry for path, entry in task.files.items()}
        self._machine.restart(files, tree)
        self._judges = {name: Judge(task, partial(self._probe, name)) for name, task in tasks.items()}
        goals = [f"In /{ROOT}/{name}: {task.goal}" for name, task in tasks.items()]
        self._opening = "\n\n".join(goals)
        self._judge()

    def _judge(self) -> None:
        """Judge the files that there are now."""
        own: dict[str, dict[str, Entry]] = {}
        for path, entry in self._machine.files().items():
            name, _, inner = path.partition("/")
            own.setdefault(name, {}).update({inner: entry} if inner or name not in self._judges else {})
        found = [judge.verdict(own.get(name, {})) for name, judge in self._judges.items()]
        more = sum(len(entries) for name, entries in own.items() if name not in self._judges)
        self._solved = all(each.is_success for each in found) and not more
        held, count = sum(each.held for each in found), sum(each.conditions + each.unasked for each in found) + more
        self._done = held / count

    def _probe(self, name: str, files: Mapping[str, Entry], command: str) -> Ran:
        """Run a probe in the box for those, which has lost all that was in it."""
        below = {name: Entry("folder", 0o755), **{f"{name}/{path}": entry for path, entry in files.items()}}
        self._prober.restart(below)
        try:
            ran = self._prober.run(f"cd {name}; {command}", _PROBE_SECONDS, 0)
        except BoxError:
            ran = Ran(_KILLED, "", False)
        if ran.code == _KILLED:  # nothing that ended a box's processes reaches the next probe
            self._prober.close()
        return ran

    def apply_action(self, action: str) -> Outcome[str]:
        call, before = read_action(action, self.options.form), self._done
        is_last = self.turn + 1 >= self.max_turns
        is_over, observation = call.tool == SUBMIT, "You have submitted."
        if call.tool == BASH:
            observation, is_over = self._ran(call.content)
        elif not call.tool:
            observation = f"That is no action; {call.problem}."
        self._log.append((f"{call.tool} {call.content}" if call.tool else "", observation))
        is_over = is_over or is_last
        success = is_over and self._solved
        reward = self._done - before if self.options.reward == "dense" else float(success)
        return Outcome(observation, reward, is_over, success, bool(call.tool))

    def _ran(self, command: str) -> tuple[str, bool]:
        """Return what the agent sees of a command, and whether the machine has ended with it."""
        try:
            text = command.strip("\n").encode("utf8", "replace").decode()
            ran = self._machine.run(text, self.options.seconds, self.turn + 1)
        except BoxError:
            self._machine.close()
            self._solved, self._done = False, 0.0
            return "The machine has ended: your processes took more memory than they may, or changed it.", True
        self._judge()
        return output_text(ran, self.options.output), False

    def anchor(self) -> str:
        return "\n".join([self._opening, *(part for pair in self._log for part in pair)])

    def progress(self) -> float:
        return self._done

    def turn_columns(self) -> Mapping[str, float | str]:
        return {"family": "+".join(name.rstrip("0123456789") for name in self._tasks)}

    @property
    def parts(self) -> Mapping[str, Task]:
        """Folder -> task, with solution and judge's data; hidden from agents."""
        return self._tasks

    def expert_action(self) -> str:
        """Return the next command of the solution that has not been given, or ``submit``.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        given = {done for done, _ in self._log}
        for name, task in self._tasks.items():
            first, *rest = task.solution
            for command in (f"cd /{ROOT}/{name}; {first}", *(f"cd /{ROOT}/{name}\n{each}" for each in rest)):
                if f"{BASH} {command}" not in given:
                    return CALLS.write(BASH, command, self.options.form)
        return CALLS.write(SUBMIT, "", self.options.form)

    def save_state(self) -> JSONValue:
        if self._machine.tree is None:
            raise SnapshotUnsupported("the machine holds more files than a snapshot may: remove some first.")
        return {"number": self._number, "log": [list(pair) for pair in self._log], "tree": self._machine.tree}

    def load_state(self, state: JSONValue) -> None:
        number, log, tree = state["number"], state["log"], state["tree"]
        if type(number) is not int or not 0 <= number < _NUMBERS or not isinstance(tree, str):
            raise ValueError(f"the instance {number!r}, or its files")
        tasks, instance = self._made(number), self.instance
        if _canonical(tasks) != instance:
            raise ValueError("the instance is another one")
        self._enter(number, tasks, tree)
        self._log = [(str(call), str(shown)) for call, shown in log]

    def close(self) -> None:
        """Remove the machine's box."""
        self._machine.close()
        self._prober.close()
        super().close()


def _canonical(tasks: Mapping[str, Task]) -> str:
    return canonical_text([[name, task.goal, packed(task.files)] for name, task in tasks.items()])
