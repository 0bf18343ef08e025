"""Launchers of agent programs: on the host, or in a sandbox."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from turngym.system.guardian import VARIABLE, Guardian
from turngym.system.scratch import scratch_root


class Launch(NamedTuple):
    """One start.

    Args:
        command: Command to execute.
        environment: Its environment variables.
        cleanup: Called once, after its end.
        stdin: Standard input; None for none.
        files: Open files that it is given; closed once it has started.
        memory_mib: Limit on its address space that has still to be set; 0 for none.
        guardian: Ends it when this process dies; None if that is seen to otherwise.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    cleanup: Callable[[], None]
    stdin: IO[bytes] | None = None
    files: tuple[int, ...] = ()
    memory_mib: int = 0
    guardian: Guardian | None = None


class Place(ABC):
    """Working directory of one program."""

    path: str
    """Its folder, as it sees it."""

    @abstractmethod
    def launch(self, words: Sequence[str], variables: Mapping[str, str]) -> Launch:
        """Return how the program is started.

        Args:
            words: Its command line.
            variables: Environment variables that it needs.
        """


class Launcher(AbstractContextManager["Launcher"], ABC):
    """Makes places for programs."""

    socket: Path | None = None
    """Additional address for the gateway to listen on."""

    @abstractmethod
    def place(self, files: Mapping[str, str], url: str) -> Place:
        """Return a new place.

        Args:
            files: Name -> content of the files in its folder.
            url: Address of the gateway.
        """

    def close(self) -> None:
        """Release what belongs to all places."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


class HostPlace(Place):
    """The host itself, with the rights of this process.

    Args:
        files: Files of the program's folder.
        memory_mib: Address space limit of the program.
        guardian: Ends the program when this process dies.
    """

    def __init__(self, files: Mapping[str, str], memory_mib: int, guardian: Guardian) -> None:
        self._folder = WorkFolder(files)
        self._memory_mib, self._guardian = memory_mib, guardian
        self.path = str(self._folder.path)

    def launch(self, words: Sequence[str], variables: Mapping[str, str]) -> Launch:
        """Return the program itself."""
        variables = {**os.environ, **variables, VARIABLE: self._guardian.new_mark()}
        return Launch(words, variables, self._folder.remove, memory_mib=self._memory_mib, guardian=self._guardian)


class HostLauncher(Launcher):
    """Starts programs on the host.

    Args:
        memory_mib: Address space of each.
    """

    def __init__(self, memory_mib: int) -> None:
        self._memory_mib = memory_mib
        self._guardian: Guardian | None = None

    def place(self, files: Mapping[str, str], url: str) -> Place:
        """Return a place on the host."""
        self._guardian = self._guardian or Guardian()
        return HostPlace(files, self._memory_mib, self._guardian)

    def close(self) -> None:
        """End the guardian."""
        if self._guardian is not None:
            self._guardian.close()
            self._guardian = None


class WorkFolder:
    """A new folder.

    Args:
        files: Name below the folder -> content.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="program-", dir=scratch_root()))
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf8")

    def remove(self) -> None:
        """Remove it with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
