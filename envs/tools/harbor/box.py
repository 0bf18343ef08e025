"""The box of an episode: a machine with files and a shell, in which commands run and from which nothing leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turngym.errors import TurngymError

VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
}
"""Variables of every command, unless the task sets others."""
LARGEST_SNAPSHOT = 16 * 2**20
"""Bytes of the files in a snapshot."""
LARGEST_REWARD = 64 * 1024
"""Bytes of a file of rewards."""


class BoxError(TurngymError, RuntimeError):
    """An order that a box could not follow, such as writing to a full disk."""


class BoxLost(BoxError):
    """A box that has ended, with its files: something inside took more memory than it may."""


class BoxSpoiled(BoxError):
    """A box that takes no more files, or starts no shell: commands have changed its folders, or filled its disk."""


class Ran(NamedTuple):
    """Result of a command.

    Args:
        code: Exit code.
        output: Standard output and error.
        is_late: Whether it was ended because its time was up.
    """

    code: int
    output: str
    is_late: bool


class Box(ABC):
    """A machine with files and a shell.

    Args:
        env: Variables of every command.
        workdir: Where commands run.
    """

    def __init__(self, env: Mapping[str, str], workdir: str) -> None:
        self.env, self.workdir = dict(env), workdir

    @abstractmethod
    def run(self, command: str, env: Mapping[str, str], seconds: float, *, stay: bool = False, user: str = "") -> Ran:
        """Run a command in a new shell.

        Args:
            command: Text for the shell.
            env: More variables.
            seconds: Timeout.
            stay: Whether the processes that it leaves behind continue.
            user: User that runs it, where the box has several; that of the image unless given.

        Raises:
            BoxLost: The box has ended.
        """

    @abstractmethod
    def put(self, tree: str, root: str, *, empty: bool = False) -> None:
        """Write a packed tree below a folder.

        Args:
            tree: Packed by :func:`turngym.envs.tools.harbor.files.packed` or :meth:`get`; empty for nothing.
            root: The folder.
            empty: Whether what is there is removed first.

        Raises:
            BoxSpoiled: It cannot be written.
            BoxError: The box cannot be reached.
        """

    @abstractmethod
    def get(self, paths: Sequence[str], most: int) -> str | None:
        """Return a packed tree of paths; None if it has more than so many bytes."""

    @abstractmethod
    def rewards(self, folder: str) -> dict[str, str | None]:
        """Return name -> text of the files of rewards in a folder; None for what is not a regular file."""

    @abstractmethod
    def end_processes(self) -> None:
        """End every process in the box."""

    @abstractmethod
    def has_processes(self) -> bool:
        """Return whether processes of earlier commands run."""

    @abstractmethod
    def close(self) -> None:
        """Remove the box; calling it again has no effect."""
