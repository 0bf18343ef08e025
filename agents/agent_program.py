"""Settings of agent programs; imports no torch."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from turngym.agents.task_packages import Source
from turngym.errors import ConfigError, nearest
from turngym.options import Options, above, below, between

FIELDS = ("base_url", "root_url", "env_url", "mcp_url", "key", "task", "task_id", "workdir", "seed", "model")
"""Placeholders of a command."""
QUESTIONS = "turngym/Questions-v0"
"""The environment of questions from a file."""
PROGRAM_JUDGE, VERIFIER_JUDGE = "program", "verifier:"
_TASK = "{task_id}"
_MOST = 1_000_000
_Limit: TypeAlias = Annotated[int, between(1, _MOST)]


class ProgramConfig(Options):
    """Settings of agent programs.

    Args:
        command: Command with arguments, such as ``python my_agent.py --base-url {base_url} --key {key}``, not passed to
            a shell. Placeholders: ``{base_url}`` (OpenAI API), ``{root_url}`` (Anthropic API), ``{env_url}``
            (environment), ``{mcp_url}`` (environment as an MCP server), ``{task}`` (rules and first observation),
            ``{task_id}`` (id in a task file), ``{workdir}`` (the episode's folder with the files of its task),
            ``{seed}`` (number of the episode). The variables OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL,
            ANTHROPIC_API_KEY, TURNGYM_ENV_URL, TURNGYM_MCP_URL and TURNGYM_WORKDIR hold the same; programs post rewards
            to TURNGYM_REWARD_URL.
        seconds: Time limit per episode in seconds, after which the program is terminated.
        memory_mib: Address space limit of the program.
        tasks: Task file instead of an environment: JSON Lines of ``{"id", "instruction", "answer", "files"}``.
        judge: Judge of the answers: ``exact``, ``normalised``, ``wide``, ``contains``, ``numeric``, ``math``, a
            function ``module:function`` or ``path/to/file.py:function`` of task and answer, a verifier such as
            ``verifier:model:openai:MODEL@URL``, or ``program``, which rewards itself over HTTP.
        package: Tasks of another package, which plays and scores them itself, instead of a command:
            ``inspect:FILE.py@TASK`` or ``verifiers:TASKSET``.
        package_options: Options of these tasks, ``name=value``.
        python: Interpreter that has the package, such as ``VENV/bin/python``; empty for this one.
        sandbox: Sandbox: ``none``, which runs programs with your rights; ``bubblewrap``, which shows them only the
            system, their own files and the gateway, and is an error if Bubblewrap is missing.
        mounts: Additional files and folders for sandboxed programs, read-only.
        processes: Maximum number of processes and threads of a sandboxed program.
        disk_mib: Size limit of a sandboxed program's files, which are in memory, and of its output.
        answer: Answer of a program that ends without an action: ``post`` (none), ``last`` (the model's last completion)
            or ``stdout`` (its output).

    Raises:
        ConfigError: The command is invalid, a limit is not positive, or there is a judge without tasks.
    """

    command: str = ""
    seconds: Annotated[float, above(0), below(_MOST)] = 300.0
    memory_mib: _Limit = 8192
    tasks: str = ""
    judge: str = "exact"
    package: str = ""
    package_options: tuple[str, ...] = ()
    python: str = ""
    answer: Literal["post", "last", "stdout"] = "post"
    sandbox: Literal["none", "bubblewrap"] = "none"
    mounts: tuple[str, ...] = ()
    processes: _Limit = 64
    disk_mib: _Limit = 256

    def check(self) -> None:
        """Check what depends on several settings."""
        if self.mounts and self.sandbox == "none":
            raise ConfigError("mounts are what sandboxed programs see: pass --agent.sandbox bubblewrap as well.")
        if self.package:
            self._check_package()
        elif self.package_options or self.python:
            raise ConfigError("options and interpreter are those of a package's tasks: pass --agent.package as well.")
        if not self.judge:
            raise ConfigError("judge of agent programs is empty: pass exact, numeric, or module:function.")
        if self.judge != "exact" and not self.tasks:
            raise ConfigError("judge of agent programs is for tasks from a file: pass --agent.tasks FILE as well.")
        if self.is_judged_elsewhere and not self.is_used:
            raise ConfigError(f"the judge {self.judge} is for agent programs: pass --agent.command as well.")
        if self.is_used:
            self.words(dict.fromkeys(FIELDS, ""))

    def _check_package(self) -> None:
        if self.command or self.tasks or self.judge != "exact" or self.answer != "post":
            raise ConfigError(
                "a package brings its tasks, program and scores: leave out --agent.command, --agent.tasks, "
                "--agent.judge and --agent.answer, or --agent.package."
            )
        if self.sandbox != "none":
            raise ConfigError("tasks of a package bring their own sandbox: leave out --agent.sandbox.")
        self.source.check()

    @property
    def source(self) -> Source:
        """Tasks of the package."""
        return Source(self.package, self.package_options, self.python)

    @property
    def is_used(self) -> bool:
        """True if a program is configured."""
        return bool(self.command or self.package)

    @property
    def task_file(self) -> str:
        """Task file; empty if tasks come from an environment."""
        return str(self.source.file) if self.package else self.tasks

    @property
    def env_options(self) -> dict[str, Any]:
        """The options of :data:`QUESTIONS` for the tasks and the judge."""
        judge = "none" if self.is_judged_elsewhere else self.judge
        return {"data": self.task_file, "reward": judge, "form": "plain"}

    @property
    def verifier(self) -> str:
        """Verifier used as the judge; empty for another judge."""
        return self.judge.removeprefix(VERIFIER_JUDGE) if self.judge.startswith(VERIFIER_JUDGE) else ""

    @property
    def is_judged_elsewhere(self) -> bool:
        """True if rewards do not come from the environment."""
        return self.rewards_itself or self.judge.startswith(VERIFIER_JUDGE)

    @property
    def rewards_itself(self) -> bool:
        """True if the program reports its reward."""
        return bool(self.package) or self.judge == PROGRAM_JUDGE

    def template(self) -> list[str]:
        """Return the words of the command with placeholders.

        Raises:
            ValueError: A quote is not closed.
        """
        if self.package:
            words = self.source.words("play", _TASK)
            return [word if word == _TASK else word.replace("{", "{{").replace("}", "}}") for word in words]
        return shlex.split(self.command)

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Return the words of the command with placeholders filled in.

        Raises:
            ConfigError: It cannot be parsed, or has an unknown placeholder.

        >>> ProgramConfig(command="agent --key {key}").words(dict.fromkeys(FIELDS, "a b"))
        ['agent', '--key', 'a b']
        """
        try:
            words = self.template()
            for word in words:
                for _, name, spec, conversion in string.Formatter().parse(word):
                    if name is not None and (name not in FIELDS or spec or conversion):
                        raise ConfigError(f"an agent command has no {{{name}}}. {nearest(name, FIELDS)}")
            filled = [word.format_map(values) for word in words]
        except ValueError as error:
            raise ConfigError(
                f"the agent command {self.command!r} cannot be read ({error}): close its quotes, and double braces "
                "that are meant as such."
            ) from error
        if not filled:
            raise ConfigError("the agent command is empty.")
        return [word.replace("\0", "") for word in filled]
