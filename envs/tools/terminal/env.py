"""Terminal: do tasks in a shell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from turngym.envs.instances import canonical_text
from turngym.envs.parsing.calls import Call
from turngym.envs.settings import worded
from turngym.envs.tools.harbor.box import BoxError, Ran
from turngym.envs.tools.harbor.calls import BASH, CALLS, SUBMIT, TOOLS, read_action
from turngym.envs.tools.harbor.files import Entry, packed
from turngym.envs.tools.terminal.exporting import harbor_files
from turngym.envs.tools.terminal.families import FAMILIES
from turngym.envs.tools.terminal.judge import Judge
from turngym.envs.tools.terminal.machine import Machine, require_programs
from turngym.envs.tools.terminal.shell_env import ShellEnv
from turngym.envs.tools.terminal.task import ROOT, Draw, Task
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.validation import require_running
from turngym.options import between, one_of
from turngym.seeding import stream

ALL = "all"
_PROBE_SECONDS = 30.0
_KILLED = 137
_PROGRAMS = ("awk", "bash", "find", "git", "gzip", "make", "python3", "sed", "sha256sum", "tar")
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


class Terminal(ShellEnv[Mapping[str, Task]]):
    """Do generated tasks in a shell: with files, tables, archives, permissions, jobs, logs, git, make and a server.

    Tasks are judged by the files that are left: those that were asked for must be right, and all others as they were.
    What must run, such as a Makefile, runs in a fresh box on inputs that were never shown. The episode terminates with
    ``submit``, and is judged after the last turn too. The reward is 1 for success and 0 for anything else, or with
    ``reward="dense"`` the change of the progress. Progress is the share of files and other conditions that are right,
    where each change that was not asked for counts as one more that is not.

    Commands run in Bubblewrap on the programs of this machine. Snapshots hold all files, so that a restored episode
    continues equally but for the clock, numbers of processes and hard links. In Docker or gVisor the tasks are played
    as Harbor folders, which ``turngym export-tasks`` writes.
    """

    class Options(ShellEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: the number of files, lines and faults, and odd cases."""
        family: Annotated[str, one_of(ALL, *FAMILIES)] = ALL
        """Kind of the tasks; ``"all"`` draws it."""
        tasks: Annotated[int, between(1, 3)] = 1
        """Number of tasks in an episode."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of calls."""

    options: Options
    file_options = worded("family", "reward", "form")

    def setup(self) -> None:
        require_programs("turngym/Terminal-v0", _PROGRAMS)
        super().setup()
        options, self._prober = self.options, Machine()
        about = _ABOUT.format(seconds=options.seconds, output=options.output, turns=self.max_turns, root=ROOT)
        bash, submit = (CALLS.write(name, text, options.form) for name, text in ((BASH, "command"), (SUBMIT, "")))
        self.instructions = _RULES.format(bash=bash, submit=submit, about=about)
        if options.form == "tags":
            schemas = tuple(each.schema for each in TOOLS.values())
            self.native_tools = ToolSet(schemas, _NATIVE_RULES.format(about=about))

    def make(self, number: int) -> Mapping[str, Task]:
        """Return folder -> task."""
        options = self.options
        draw = Draw(stream("terminal", number), options.level)
        names = list(FAMILIES) if options.family == ALL else [options.family]
        chosen = draw.some(names, options.tasks) if len(names) > 1 else names * options.tasks
        return {f"{name}{place + 1}": FAMILIES[name](draw) for place, name in enumerate(chosen)}

    def text_of(self, made: Mapping[str, Task]) -> str:
        return canonical_text([[name, task.goal, packed(task.files)] for name, task in made.items()])

    def enter(self, made: Mapping[str, Task]) -> tuple[Mapping[str, Entry], str]:
        self._tasks = made
        files = {name: Entry("folder", 0o755) for name in made}
        for name, task in made.items():
            files |= {f"{name}/{path}": entry for path, entry in task.files.items()}
        self._judges = {name: Judge(task, partial(self._probe, name)) for name, task in made.items()}
        return files, "\n\n".join(f"In /{ROOT}/{name}: {task.goal}" for name, task in made.items())

    def judge(self, files: Mapping[str, Entry]) -> tuple[bool, float]:
        own: dict[str, dict[str, Entry]] = {}
        for path, entry in files.items():
            name, _, inner = path.partition("/")
            own.setdefault(name, {}).update({inner: entry} if inner or name not in self._judges else {})
        found = [judge.verdict(own.get(name, {})) for name, judge in self._judges.items()]
        more = sum(len(entries) for name, entries in own.items() if name not in self._judges)
        held, count = sum(each.held for each in found), sum(each.conditions + each.unasked for each in found) + more
        return all(each.is_success for each in found) and not more, held / count

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

    def read(self, action: str) -> Call:
        return read_action(action, self.options.form)

    def turn_columns(self) -> Mapping[str, float | str]:
        return {"family": "+".join(name.rstrip("0123456789") for name in self._tasks)}

    @property
    def parts(self) -> Mapping[str, Task]:
        """Folder -> task, with solution and judge's data; hidden from agents."""
        return self._tasks

    @property
    def work_folder(self) -> str:
        return f"/{ROOT}/{next(iter(self._tasks))}"

    def harbor_files(self) -> dict[str, Entry]:
        """Return the files of a Harbor folder with the tasks of the episode and their judge; not for agents."""
        return harbor_files(self._tasks)

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

    def close(self) -> None:
        """Remove the machine's boxes."""
        self._prober.close()
        super().close()
