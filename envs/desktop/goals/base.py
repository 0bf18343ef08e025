"""The definition of a goal: initial files, programs, text, and conditions on the final files."""

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
        text: Goal in words.
        files: Initial files in the user's folder.
        programs: Initially started programs with their files, in order.
        parts: Conditions to reach; the share that holds is the progress.
        kept: Conditions that must still hold at the end: that nothing else was changed.
        plan: The actions of the oracle, without the last one, ``done``.
        repair: Actions that restore the initial state, as far as the plan needs it, after other actions.
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
        """Return whether all conditions hold."""
        return all(check(folder) for check in (*self.parts, *self.kept))


Builder: TypeAlias = Callable[[np.random.Generator], Goal]


def program(name: str, *files: str) -> tuple[str, ...]:
    """Return the command that opens files with a program."""
    options = {EDITOR: ("--disable-server",), SPREADSHEET: ("--no-splash",)}[name]
    return (name, *options, *(f"{HOME}/{file}" for file in files))


def unchanged(name: str, content: bytes) -> Check:
    """Return the check that a file is as it was."""
    return lambda folder: folder.content(name) == content


def lines_are(name: str, lines: Sequence[str]) -> Check:
    """Return the check that a text file holds these lines, with or without a final newline."""
    return lambda folder: folder.lines(name) == list(lines)


def next_action(goal: Goal, actions: Sequence[str]) -> str:
    """Return the next action after the actions so far.

    If the actions so far follow the plan, this is its next action. Otherwise the goal's repair comes first, beginning
    with keys that close menus and dialogs, and then the plan. The oracle uses only the actions so far and the goal.
    """
    plan = (*goal.plan, "done")
    done = tuple(action for action in actions if action != "wait")
    if plan[: len(done)] == done:
        return plan[len(done)]
    way = (*goal.repair, *plan)
    for length in range(min(len(way) - 1, len(done)), 0, -1):
        if done[-length:] == way[:length]:
            return way[length]
    return way[0]
