"""Tasks of the terminal as Harbor folders."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.shell import variables
from turngym.envs.tools.terminal.task import ROOT, Task

_HERE = Path(__file__).parent
_STEP = "steps/work"
_TOML = """schema_version = "1.4"
artifacts = ["/{root}"]

[metadata]
source = "turngym/Terminal-v0"

[agent]
timeout_sec = 600

[verifier]
timeout_sec = 300
environment_mode = "separate"

[environment]
memory_mb = 512
network_mode = "no-network"

[environment.env]
{variables}

[[steps]]
name = "work"
"""
_RULES = "Everything below /{root} must be as the tasks want it and otherwise stay as it was."


def harbor_files(tasks: Mapping[str, Task]) -> dict[str, Entry]:
    """Return the files of a Harbor folder in which tasks are done and judged as in the environment.

    Args:
        tasks: Folder -> task.
    """
    settings = {name: text for name, text in variables(0).items() if name != "BASH_ENV"}
    lines = "\n".join(f"{name} = {json.dumps(text)}" for name, text in settings.items())
    toml = _TOML.format(root=ROOT, variables=lines)
    goals = [f"In /{ROOT}/{name}: {task.goal}" for name, task in tasks.items()]
    content = {
        "root": f"/{ROOT}",
        "variables": settings,
        "tasks": {name: _as_json(task) for name, task in tasks.items()},
    }
    texts = {
        "task.toml": toml,
        "environment/Dockerfile": f"FROM buildpack-deps:bookworm\nWORKDIR /{ROOT}\n",
        f"{_STEP}/instruction.md": "\n\n".join([*goals, _RULES.format(root=ROOT)]) + "\n",
        f"{_STEP}/workdir/setup.sh": "".join(f"{line}\n" for line in _set_up(tasks)),
        f"{_STEP}/solution/solve.sh": "".join(f"{line}\n" for line in _solution(tasks)),
        f"{_STEP}/tests/test.sh": "exec python3 -I /tests/exported.py\n",
        f"{_STEP}/tests/exported.py": (_HERE / "exported.py").read_text("utf8"),
        f"{_STEP}/tests/judge.py": (_HERE / "judge.py").read_text("utf8"),
        f"{_STEP}/tests/tasks.json": json.dumps(content),
    }
    files = {
        f"{_STEP}/workdir/{name}/{path}": entry._replace(mode=0o644)
        for name, task in tasks.items()
        for path, entry in task.files.items()
        if entry.kind == "file"
    }
    return {**{name: Entry("file", 0o644, text.encode()) for name, text in texts.items()}, **files}


def _set_up(tasks: Mapping[str, Task]) -> Iterator[str]:
    """Yield the lines that make folders, links and permissions, which a folder of files does not hold."""
    yield "set -e"
    for name, task in tasks.items():
        place = shlex.quote(name)
        yield f"mkdir -p {place}"
        for path, entry in task.files.items():
            inner = shlex.quote(f"{name}/{path}")
            if entry.kind == "folder":
                yield f"mkdir -p {inner}"
            elif entry.kind == "link":
                yield f"ln -s {shlex.quote(entry.data.decode('utf8'))} {inner}"
        for path, entry in reversed(list(task.files.items())):
            if entry.kind != "link":
                yield f"chmod {entry.mode:o} {shlex.quote(f'{name}/{path}')}"
        yield f"chmod 755 {place}"
    yield "rm setup.sh"


def _solution(tasks: Mapping[str, Task]) -> Iterator[str]:
    for name, task in tasks.items():
        yield f"cd /{ROOT}/{shlex.quote(name)}"
        yield from task.solution


def _as_json(task: Task) -> dict[str, Any]:
    return {
        "files": _rows(task.files),
        "wanted": {
            path: [None if each.data is None else base64.b64encode(each.data).decode(), each.mode, each.is_folder]
            for path, each in task.wanted.items()
        },
        "scratch": list(task.scratch),
        "probes": [
            {"keep": list(each.keep), "files": _rows(each.files), "command": each.command, "output": each.output}
            for each in task.probes
        ],
    }


def _rows(files: Mapping[str, Entry]) -> dict[str, list[Any]]:
    return {path: [each.kind, each.mode, base64.b64encode(each.data).decode()] for path, each in files.items()}
