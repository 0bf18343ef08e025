"""Tasks in a folder: one with a ``task.toml``, or many such folders."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from turngym.envs.tools.harbor.files import Entry, read_bytes, read_text, read_tree
from turngym.envs.tools.harbor.settings import LARGEST_TOML, StepSettings, TaskSettings, read_settings
from turngym.errors import ConfigError

_LARGEST_INSTRUCTION = 256 * 1024
_MOST_TASKS = 10_000
_CANARY = "canary"
_CANARY_MARKS = ("<!--", "#", "//", "BENCHMARK DATA", "harbor-canary", "terminal-bench-canary")


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        name: Name of its folder.
        folder: The folder.
        settings: Its ``task.toml``.
    """

    name: str
    folder: Path
    settings: TaskSettings

    def step_folder(self, step: StepSettings) -> Path:
        """Return the folder of a step; the task's own where it has no steps."""
        return self.folder / "steps" / step.name if step.name else self.folder

    def instruction(self, step: StepSettings) -> str:
        """Return the prompt of a step, without canary lines.

        Raises:
            ConfigError: It is missing, too large, or no text.
        """
        return without_canaries(read_text(self.step_folder(step) / "instruction.md", _LARGEST_INSTRUCTION))

    def tests(self, step: StepSettings) -> dict[str, Entry]:
        """Return the tests of a step; its own files replace those of the task."""
        return self._both("tests", step)

    def solution(self, step: StepSettings) -> dict[str, Entry]:
        """Return the files of the solution of a step."""
        return self._both("solution", step)

    def workdir(self, step: StepSettings) -> dict[str, Entry]:
        """Return the files that a step adds to the working directory."""
        return read_tree(self.step_folder(step) / "workdir") if step.name else {}

    def verifier_folder(self, step: StepSettings) -> tuple[Path, bool]:
        """Return the folder of the Dockerfile of a separate verifier, and whether that brings the tests itself."""
        for folder in (self.step_folder(step) / "tests", self.folder / "tests"):
            if (folder / "Dockerfile").is_file():
                return folder, True
        box = step.verifier.box
        return self.folder / "environment", step.verifier.is_declared and box is not None and bool(box.image)

    def _both(self, name: str, step: StepSettings) -> dict[str, Entry]:
        found = read_tree(self.folder / name)
        return {**found, **read_tree(self.step_folder(step) / name)} if step.name else found

    @cached_property
    def digest(self) -> str:
        """Hash of everything in the folder that an episode can depend on."""
        found = hashlib.sha256(read_bytes(self.folder / "task.toml", LARGEST_TOML))
        for part in ("environment", "tests", "solution", "steps"):
            for name, entry in read_tree(self.folder / part).items():
                found.update(f"{part}/{name}\n{entry.kind} {entry.mode:o} {len(entry.data)}\n".encode())
                found.update(entry.data)
        for step in self.settings.steps:
            found.update(self.instruction(step).encode())
        return found.hexdigest()


def without_canaries(text: str) -> str:
    r"""Return a prompt without the lines at its start that mark it as data of a benchmark.

    >>> without_canaries("<!-- harbor-canary GUID 1234 -->\n\nSort the file.\n")
    'Sort the file.'
    """
    lines = text.split("\n")
    while lines and (not lines[0].strip() or _is_canary(lines[0])):
        lines.pop(0)
    return "\n".join(line for line in lines if not _is_canary(line)).strip()


def _is_canary(line: str) -> bool:
    return _CANARY in line.lower() and line.strip().startswith(_CANARY_MARKS)


def task_folders(path: str, split: str) -> Mapping[str, Path]:
    """Return name -> folder of the tasks in a folder: itself, those in it, or those in its folder of the split.

    Raises:
        ConfigError: There are none, or too many.
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"{path!r} is not a folder: pass that of a Harbor task, which holds a task.toml.")
    if (folder / "task.toml").is_file():
        return {folder.name: folder}
    found = _tasks_in(folder) or _tasks_in(folder / split)
    if not found:
        raise ConfigError(
            f"{path} holds no Harbor task: expected a task.toml, or folders with one each, here or in {split}/."
        )
    if len(found) > _MOST_TASKS:
        raise ConfigError(f"{path} holds more than {_MOST_TASKS:,} tasks: pass a part of them.")
    return found


def _tasks_in(place: Path) -> dict[str, Path]:
    names = sorted(os.listdir(place)) if place.is_dir() else []
    folders = {name: place / name for name in names if (place / name / "task.toml").is_file()}
    return {name: folder for name, folder in folders.items() if not folder.is_symlink()}


def read_task(folder: Path) -> Task:
    """Return the task of a folder; nothing of it is run.

    Raises:
        ConfigError: Its ``task.toml`` or an instruction cannot be read.
    """
    settings = read_settings(read_text(folder / "task.toml", LARGEST_TOML), str(folder / "task.toml"))
    task = Task(folder.name, folder, settings)
    for step in settings.steps:
        if task.step_folder(step).is_symlink() or (folder / "steps").is_symlink():
            raise ConfigError(f"{task.step_folder(step)} is a symbolic link: tasks hold their files themselves.")
        if not task.instruction(step):
            raise ConfigError(f"{task.step_folder(step) / 'instruction.md'} is empty: it is the prompt.")
    return task
