"""The files in the desktop user's folder, read defensively: programs may leave anything there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from turngym.envs.desktop.sheets import Sheet, has_formulas, read, with_values

_LARGEST_BYTES = 1024 * 1024
_MOST_FILES = 50


class Folder:
    """The current contents of a user's folder, except hidden files and folders.

    Args:
        path: The folder.
        work_out: Returns the tables of a workbook, in CSV, with formulas worked out.
    """

    def __init__(self, path: Path, work_out: Callable[[str], tuple[str, ...]]) -> None:
        self._path = path
        self._work_out = work_out
        self._books: dict[str, tuple[bytes, tuple[Sheet, ...]]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of the files."""
        with os.scandir(self._path) as entries:
            found = sorted(each.name for each in entries if not each.name.startswith("."))
        return tuple(name for name in found if self.content(name) is not None)[:_MOST_FILES]

    def content(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing or too large."""
        try:
            descriptor = os.open(self._path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LARGEST_BYTES:
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def text(self, name: str) -> str | None:
        """Return the text of a file with its line endings unchanged; None if there is none."""
        content = self.content(name)
        return None if content is None else content.decode("utf8", "replace")

    def lines(self, name: str) -> list[str]:
        """Return the lines of a text file without an empty last one; an empty list if there is no file."""
        return (self.text(name) or "").rstrip().splitlines()

    def book(self, name: str) -> tuple[Sheet, ...]:
        """Return the sheets of a workbook, formulas worked out; none if there is no workbook."""
        content = self.content(name) or b""
        if name in self._books and self._books[name][0] == content:
            return self._books[name][1]
        sheets = read(content)
        if has_formulas(sheets):
            sheets = with_values(sheets, self._work_out(name))
        self._books[name] = content, sheets
        return sheets

    def sheet(self, name: str) -> Sheet:
        """Return the first sheet of a workbook, an empty one if there is none."""
        return next(iter(self.book(name)), Sheet(""))

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files with fixed modification times."""
        self._books.clear()
        for name, content in files.items():
            path = self._path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (_TIME, _TIME))


_TIME = 1_767_603_600
"""Modification time of the files of every episode: 5 January 2026, 9:00."""
