"""Harbor task folders as environments: a shell in a box, tests that judge."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from turngym.envs.core import UNBOUNDED, MaxTurns, Outcome, TextEnv
from turngym.envs.instances import canonical_text
from turngym.envs.parsing.calls import Call, harmless
from turngym.envs.settings import worded
from turngym.envs.tools.harbor.box import BoxLost
from turngym.envs.tools.harbor.calls import BASH, CALLS, SUBMIT, TOOLS, output_text, read_action
from turngym.envs.tools.harbor.making import BoxMaker, unplayable
from turngym.envs.tools.harbor.rewards import scalar
from turngym.envs.tools.harbor.solution import solution_command
from turngym.envs.tools.harbor.tasks import Task, read_task, task_folders
from turngym.envs.tools.harbor.trial import Rules, Trial
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.validation import require_running
from turngym.errors import ConfigError, TurngymError
from turngym.options import between
from turngym.types import JSONValue

EXAMPLE = "example"
_EXAMPLE_FOLDER = Path(__file__).parent / "data" / "example"
_RULES = """Do the task in a shell. You may think first; then write one of:
{bash}
{submit}  (when you are done)
{about}"""
_NATIVE_RULES = "Do the task in a shell. You may think first; then call a tool: {about}"
_ABOUT = """Each command runs in a new shell: files stay, variables and the folder do not. It has {seconds:g} seconds, \
and you see at most {output} characters of what it prints. After you submit, your work is tested. You have {turns} \
turns."""


class Harbor(TextEnv[str]):
    """Do the tasks of Harbor folders, such as those of Terminal-Bench, in a shell.

    An episode has one step or several, each with a prompt; after ``submit``, or the last turn, the step's tests run and
    the next one starts, or the episode terminates. The reward, which comes at the end, is the number that the tests
    wrote: of several steps the mean or the last, as the task says. Success is a reward of at least 1. Named rewards are
    columns. Tests that fail to write a finite number are a fault.

    Tasks whose Dockerfile copies files and sets variables play in Bubblewrap, on the programs of this machine; others
    need Docker. Snapshots hold the files of the box.
    """

    class Options(TextEnv.Options):
        path: str = EXAMPLE
        """Folder of a task (with a ``task.toml``), of tasks, or with folders ``train``, ``dev`` and ``test`` of tasks;
        ``"example"`` for those that come with turngym."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of calls."""
        sandbox: Literal["auto", "bubblewrap", "docker"] = "auto"
        """Box of commands: ``"auto"`` takes bubblewrap where the task's Dockerfile allows it, else docker."""
        runtime: str = ""
        """Runtime of Docker, such as ``"runsc"`` (gVisor)."""
        network: bool = False
        """Whether boxes of tasks that ask for a network have one; with Docker only."""
        seconds: Annotated[float, between(0.1, 36_000)] = 120.0
        """Time of one command."""
        output: Annotated[int, between(100, 100_000)] = 8000
        """Characters shown of a command's output."""
        reward: str = ""
        """Name of the reward that counts, for tasks with several; else the one named ``reward``, or their mean."""
        variables: tuple[str, ...] = ()
        """Environment variables of this machine that tasks may read, as ``${NAME}``."""
        background: bool = False
        """Whether processes that a command leaves behind continue, through the tests too, as tasks about servers need.
        They can forge rewards, and there are no snapshots while they run."""
        skip: bool = False
        """Leave out tasks that cannot be read or played here, with a warning, instead of raising."""
        max_turns: MaxTurns = 50

    options: Options
    beaten_by = dict.fromkeys(
        ("last winner's first action", "winners' most frequent action"),
        "The splits of one folder share its tasks, whose solution is often a single command.",
    )
    file_options = worded("form")
    finds_action = True
    score_range = UNBOUNDED

    def setup(self) -> None:
        options = self.options
        self._trial: Trial | None = None
        self._maker = BoxMaker(options.sandbox, options.runtime, options.network)
        folder = str(_EXAMPLE_FOLDER) if options.path == EXAMPLE else options.path
        self._tasks = _playable(folder, self.split, self._maker, options.skip)
        self._names = tuple(self._tasks)
        self.finite_instances = len(self._names)
        about = _ABOUT.format(seconds=options.seconds, output=options.output, turns=self.max_turns)
        bash, submit = (CALLS.write(name, text, options.form) for name, text in ((BASH, "command"), (SUBMIT, "")))
        self.instructions = _RULES.format(bash=bash, submit=submit, about=about)
        if options.form == "tags":
            schemas = tuple(each.schema for each in TOOLS.values())
            self.native_tools = ToolSet(schemas, _NATIVE_RULES.format(about=about))

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the tasks' folders."""
        return self._names

    def begin(self, task: str | int | None) -> str:
        """Take the task of that name, or draw one."""
        name = self._names[int(self.np_random.integers(len(self._names)))] if task is None else str(task)
        if name not in self._tasks:
            raise ConfigError(f"{self.env_id} has no task {name[:100]!r} in {self.options.path}.")
        self._take(name)
        return self._prompt()

    def _take(self, name: str) -> None:
        self.close()
        options, task = self.options, self._tasks[name]
        rules = Rules(self._maker.make, options.variables, options.seconds, options.background)
        self._trial = Trial(task, rules)
        self._log: list[tuple[str, str]] = []
        self.instance = canonical_text([name, task.digest])

    @property
    def trial(self) -> Trial:
        """The task under way; not for agents.

        Raises:
            ConfigError: No episode has started.
        """
        if self._trial is None:
            raise ConfigError(f"{self.env_id} has no task before the first reset(): call it first.")
        return self._trial

    def _prompt(self) -> str:
        trial = self.trial
        text = harmless(trial.task.instruction(trial.step))
        count = len(trial.task.settings.steps)
        return text if count == 1 else f"Step {trial.number} of {count}.\n\n{text}"

    def apply_action(self, action: str) -> Outcome[str]:
        """Run a command, or verify."""
        call, is_last = read_action(action, self.options.form), self.turn + 1 >= self.max_turns
        is_valid, shown = bool(call.tool), ""
        if not is_valid:
            shown = f"That is no action; {call.problem}."
        elif call.tool == BASH:
            shown = self._ran(call.content)
        if not self.trial.is_over and (is_last or (is_valid and call.tool == SUBMIT)):
            self.trial.submit()
            shown = f"{shown}\nNo turns are left; your work is tested." if is_last and shown else shown
        return self._outcome(call, shown, is_valid, is_last)

    def _outcome(self, call: Call, shown: str, is_valid: bool, is_last: bool) -> Outcome[str]:
        trial = self.trial
        if trial.is_over or is_last:
            trial.end()
            shown = shown or "Your work has been tested."
        elif is_valid and call.tool == SUBMIT:
            shown = f"Your work has been tested.\n\n{self._prompt()}"
        self._log.append((f"{call.tool} {call.content}" if is_valid else "", shown))
        if not trial.is_over:
            return Outcome(shown, action_is_valid=is_valid)
        reward = scalar(trial.rewards, self.options.reward)
        return Outcome(shown, reward, terminated=True, success=reward >= 1, action_is_valid=is_valid)

    def _ran(self, command: str) -> str:
        try:
            ran = self.trial.run(command.strip("\n").encode("utf8", "replace").decode())
        except BoxLost:
            self.trial.lose()
            return "The machine has ended: your processes took more memory than they may."
        return output_text(ran, self.options.output)

    def score(self) -> float:
        """Return the reward of the steps so far; 0 before the first is verified."""
        trial = self.trial
        return scalar(trial.rewards, self.options.reward) if trial.results else 0.0

    def progress(self) -> float:
        return float(self._success == 1)  # the remaining distance is unknown

    def anchor(self) -> str:
        parts = [part for pair in self._log for part in pair]
        return "\n".join([self.trial.task.instruction(self.trial.task.settings.steps[0]), *parts])

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return the rewards by name, once the episode is over."""
        trial = self.trial
        rewards = trial.rewards if trial.is_over and trial.results else {}
        return {"task_id": trial.task.name, **{f"reward_{_column(name)}": value for name, value in rewards.items()}}

    def expert_action(self) -> str:
        """Return the solution as a command, then ``submit``.

        Raises:
            ConfigError: No episode is under way, or the task has no solution that fits into an action.
        """
        require_running(self)
        trial = self.trial
        command = solution_command(trial.task, trial.step, self.options.variables)
        marks = [place for place, (done, _) in enumerate(self._log) if done.startswith(f"{SUBMIT} ")]
        since = self._log[marks[-1] + 1 if marks else 0 :]
        if any(done == f"{BASH} {command}" for done, _ in since):
            return CALLS.write(SUBMIT, "", self.options.form)
        return CALLS.write(BASH, command, self.options.form)

    def save_state(self) -> JSONValue:
        return {"task": self.trial.task.name, "log": [list(each) for each in self._log], **self.trial.save()}

    def load_state(self, state: JSONValue) -> None:
        name = str(state["task"])
        if name not in self._tasks:
            raise ValueError(f"the snapshot is of a task that {self.options.path} does not have")
        instance = self.instance
        self._take(name)
        if self.instance != instance:
            raise ValueError("the files of the task are not those of the snapshot")
        self._log = [(str(call), str(shown)) for call, shown in state["log"]]
        self.trial.load(state)

    def close(self) -> None:
        """Remove the box."""
        if self._trial is not None:
            self._trial.close()
        super().close()


def _column(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)[:60]


@lru_cache(maxsize=64)
def _read(folder: Path, stamp: int) -> Task:
    return read_task(folder)


def _playable(path: str, split: str, maker: BoxMaker, skips: bool) -> dict[str, Task]:
    """Return the tasks of a folder that can be played here."""
    found: dict[str, Task] = {}
    left_out: list[str] = []
    for name, folder in task_folders(path, split).items():
        try:
            task = _read(folder, (folder / "task.toml").stat().st_mtime_ns)
            maker.require(task)
            found[name] = task
        except TurngymError as error:
            if not skips:
                raise
            left_out.append(f"{name} ({error})")
    if not found:
        raise ConfigError(f"no task of {path} can be played here: {unplayable(left_out)}.")
    if left_out:
        warnings.warn(f"{len(left_out)} tasks of {path} are left out: {unplayable(left_out)}.", stacklevel=2)
    return found
