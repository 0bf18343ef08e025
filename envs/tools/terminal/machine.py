"""The machine of an episode: a box, started when it is needed, whose files are its whole state."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Mapping, Sequence

from turngym.envs.tools.harbor.box import LARGEST_SNAPSHOT, BoxError, Ran
from turngym.envs.tools.harbor.bubblewrap_box import BubblewrapBox, base_files, require_boxes
from turngym.envs.tools.harbor.dockerfile import Recipe
from turngym.envs.tools.harbor.files import Entry, packed_rows, unpacked
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.envs.tools.terminal.shell import CLOCK, REAL_TIME, START, clock, start_file, variables
from turngym.envs.tools.terminal.task import ROOT
from turngym.errors import MissingExtra

_SETTINGS = BoxSettings(memory_mib=512, storage_mib=16)
_PATIENCE = 15.0
_SECOND = 10**9


def require_programs(env_id: str, programs: Sequence[str]) -> None:
    """Raise unless the programs of an environment's tasks are there.

    Raises:
        MissingExtra: Some are missing, or Bubblewrap is.
    """
    require_boxes()
    missing = [name for name in programs if shutil.which(name, path="/usr/bin:/bin") is None]
    if missing:
        raise MissingExtra(f"{env_id} needs {', '.join(missing)}: apt-get install {' '.join(missing)}.")


def is_tree(text: str) -> bool:
    """Return whether a text is a packed tree: a command may have changed the program in the box that packs.

    >>> is_tree(packed_rows([("a", Entry("folder"), 0)])), is_tree("a"), is_tree(packed_rows([("a", Entry("pipe"), 0)]))
    (True, False, False)
    """
    try:
        return all(0 <= stamp < 2**63 for _, _, stamp in unpacked(text, LARGEST_SNAPSHOT))
    except (ValueError, TypeError, RecursionError, OverflowError, zlib.error):
        return False


class Machine:
    """A box in which one task after another is done; no process outlives a command, so that files are all its state.

    Between two tasks, a box loses all processes and files.
    """

    def __init__(self) -> None:
        self._box: BubblewrapBox | None = None
        self._is_used = False
        self._start = ""
        self._unpacked = "", list[tuple[str, Entry, int]]()
        self.tree: str | None = ""
        """Packed files after the last command; empty before the first, None if they are too large."""

    def restart(self, files: Mapping[str, Entry], tree: str = "") -> None:
        """Take another task, whose files are written when the first command runs.

        Args:
            files: Files below the folder of tasks.
            tree: Packed tree of a saved machine, which replaces them.
        """
        found = {**base_files(), START: start_file(), ROOT: Entry("folder", 0o755)}
        found |= {f"{ROOT}/{path}": entry for path, entry in files.items()}
        self._start = packed_rows((path, entry, CLOCK * _SECOND) for path, entry in found.items())
        self.tree, self._is_used = tree, False

    def run(self, command: str, seconds: float, turn: int) -> Ran:
        """Run a command in a new shell, in the folder and with the variables that the last one left.

        Raises:
            BoxError: The box has ended, or cannot follow orders any more.
        """
        box = self._ready()
        ran = box.run(command, variables(turn), seconds)
        tree = box.get(["/"], LARGEST_SNAPSHOT, (REAL_TIME * _SECOND, clock(turn) * _SECOND))
        self.tree = tree if tree and is_tree(tree) else None
        return ran

    def files(self) -> dict[str, Entry]:
        """Return the files below the folder of tasks; none if they are too large."""
        rows = self._rows()
        return {path.removeprefix(f"{ROOT}/"): entry for path, entry, _ in rows if path.startswith(f"{ROOT}/")}

    def write(self, path: str, data: bytes, turn: int) -> None:
        """Write a file below the folder of tasks, in a folder that is there; its permissions stay.

        The box gets it with all other files when the next command runs.
        """
        rows = {name: (entry, stamp) for name, entry, stamp in self._rows()}
        name = f"{ROOT}/{path}"
        mode = rows[name][0].mode if name in rows else 0o644
        rows[name] = Entry("file", mode, data), clock(turn) * _SECOND
        self.tree = packed_rows((each, *content) for each, content in rows.items())
        self._is_used = False

    def _rows(self) -> list[tuple[str, Entry, int]]:
        text = self._start if self.tree == "" else self.tree or ""
        if text != self._unpacked[0]:
            self._unpacked = text, unpacked(text, LARGEST_SNAPSHOT)
        return self._unpacked[1]

    def close(self) -> None:
        """Remove the box; calling it again has no effect."""
        box, self._box = self._box, None
        if box is not None:
            box.close()

    def _ready(self) -> BubblewrapBox:
        """Return the box with the files of the task; a new one where the last was lost."""
        if self._is_used and self._box is not None:
            return self._box
        try:
            return self._cleaned()
        except BoxError:
            self.close()
            return self._cleaned()

    def _cleaned(self) -> BubblewrapBox:
        if self._box is None:
            self._box = BubblewrapBox(Recipe(workdir=f"/{ROOT}"), _SETTINGS, {}, _PATIENCE)
        else:
            self._box.end_processes()
        self._box.put(self.tree or self._start, "/", empty=True)
        self._is_used = True
        return self._box
