"""What a goal is: files to begin with, programs, words, and what has to be true of the files in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from turngym.envs.desktop.folder import Folder

Check: TypeAlias = Callable[[Folder], bool]
HOME = "/home/user"
EDITOR, SPREADSHEET = "mousepad", "gnumeric"


@dataclass(frozen=True)
class Goal:
    """One instance of a goal.

    Args:
        text: What to do, in words.
        files: What lies in the user's folder at the beginning.
        programs: The programs that run then, with their files, in the order in which they are started.
        parts: What has to become true; the share that holds is the progress.
        kept: What else has to be true in the end: that nothing else was changed.
        plan: The actions of the oracle, without the last one, ``done``.
        repair: What brings the beginning back about, as far as the plan needs it, where something else was done.
    """

    text: str
    files: Mapping[str, bytes]
    programs: Sequence[Sequence[str]]
    parts: Sequence[Check]
    kept: Sequence[Check]
    plan: Sequence[str]
    repair: Sequence[str]

    @property
    def canonical(self) -> str:
        """The instance as text: equal for equal ones."""
        return json.dumps([self.text, {name: content.decode("latin1") for name, content in self.files.items()}])

    def progress(self, folder: Folder) -> float:
        """Return the share of the parts that hold."""
        return sum(part(folder) for part in self.parts) / len(self.parts)

    def is_reached(self, folder: Folder) -> bool:
        """Return whether everything is as it should be."""
        return all(check(folder) for check in (*self.parts, *self.kept))


Builder: TypeAlias = Callable[[np.random.Generator], Goal]


def program(name: str, *files: str) -> tuple[str, ...]:
    """Return the command that opens files with a program."""
    options = {EDITOR: ("--disable-server",), SPREADSHEET: ("--no-splash",)}[name]
    return (name, *options, *(f"{HOME}/{file}" for file in files))


def unchanged(name: str, content: bytes) -> Check:
    """Return the check that a file is as it was."""
    return lambda folder: folder.content(name) == content


def no_other_files(*names: str) -> Check:
    """Return the check that nothing was left beside these files."""
    return lambda folder: set(folder.names()) <= set(names)


def lines_are(name: str, lines: Sequence[str]) -> Check:
    """Return the check that a text file holds these lines; how it ends is no matter."""
    return lambda folder: folder.lines(name) == list(lines)
