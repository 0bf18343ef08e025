"""The solution of a task as the action of its expert."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection, Mapping

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.harbor.settings import StepSettings, resolved
from turngym.envs.tools.harbor.tasks import Task
from turngym.errors import ConfigError

_LONGEST_SOLUTION = 90_000
_NEEDS_FILES = ("solution", "$0", "BASH_SOURCE", "</bash>", "\0", "\ufffd")
"""Parts of a script that needs to be a file, or that a call in tags cannot hold."""


def solution_command(task: Task, step: StepSettings, allowed: Collection[str] = ()) -> str:
    """Return the solution of a step as a command.

    A solution of one file is its text; others are written to ``/solution`` first.

    Args:
        task: The task.
        step: The step.
        allowed: Variables of the host that tasks may read.

    Raises:
        ConfigError: There is none, or it is too long for an action.
    """
    files = task.solution(step)
    main = files.get("solve.sh")
    if main is None or main.kind != "file":
        raise ConfigError(f"the task {task.name} has no solution/solve.sh, so there is no expert action.")
    env = resolved(task.settings.solution_env, allowed, str(task.folder / "task.toml"))
    variables = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in env.items())
    text = main.data.decode("utf8", "replace").strip("\n")
    if len(files) > 1 or any(mark in text for mark in _NEEDS_FILES):
        text = f"{_written(files)}bash /solution/solve.sh"
    command = f"{variables}{text}"
    if len(command) > _LONGEST_SOLUTION:
        raise ConfigError(f"the solution of {task.name} has {len(command):,} characters, too many for an action.")
    return command


def _written(files: Mapping[str, Entry]) -> str:
    lines = ["mkdir -p /solution"]
    for name, entry in files.items():
        place = shlex.quote(f"/solution/{name}")
        if entry.kind == "folder":
            lines.append(f"mkdir -p {place}")
        elif entry.kind == "link":
            lines.append(f"ln -sfn {shlex.quote(entry.data.decode('utf8', 'replace'))} {place}")
        else:
            data = base64.b64encode(entry.data).decode()
            lines.append(f"echo {data} | base64 -d > {place}; chmod {entry.mode:o} {place}")
    return "\n".join([*lines, ""])
