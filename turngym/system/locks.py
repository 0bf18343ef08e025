"""One writer per folder: a lock that the system releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from turngym.errors import FolderInUse
from turngym.system.processes import has_ended, start_of

try:
    import fcntl
except ImportError:  # Windows, where the holder's process is looked at instead
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".lock"
_LARGEST = 4096
_TRIES = 100
# a folder that somebody else made may hold a link of that name, to a file that the holder's name would replace
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class Holder:
    """Holder of a folder.

    Args:
        pid: Number of the process.
        host: Name of its machine.
        started: When the process started, in clock ticks since the machine did; numbers of processes are used again.
        since: When it took the folder, as a date.
    """

    pid: int
    host: str
    started: int
    since: str

    @classmethod
    def here(cls) -> Holder:
        """Return this process."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), socket.gethostname(), start_of(os.getpid()), since)

    @classmethod
    def read(cls, text: str) -> Holder | None:
        """Return what :meth:`write` wrote; None for anything else.

        >>> Holder.read("") is None, Holder.read(Holder.here().write()) == Holder.here()
        (True, True)
        """
        try:
            found = json.loads(text)
            return cls(int(found["pid"]), str(found["host"])[:100], int(found["started"]), str(found["since"])[:40])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None

    def write(self) -> str:
        """Return the holder as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended; that of another machine never is."""
        if self.host != socket.gethostname():
            return False
        return has_ended(self.pid) or self.started != start_of(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class FolderLock:
    """Keeps every other process out of a folder, until it is released or this process ends.

    The lock is that of the system on the file ``.lock``, so a killed process leaves none behind and forks do not
    inherit it. The file says who holds it. Where the file system has no locks, its content alone counts: a holder that
    has ended on this machine is followed, one on another machine has to be removed by hand.

    Args:
        path: The folder, which is there.
        work: Activity in the folder for the message, such as ``"training run"``.

    Raises:
        FolderInUse: Another process holds it.
        OSError: The folder cannot be written.
    """

    def __init__(self, path: Path, work: str) -> None:
        self.file = path / LOCK_FILE
        self._work = work
        self._descriptor = self._taken()
        _HELD.add(self)
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the name of its holder
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, Holder.here().write().encode(), 0)

    def _taken(self) -> int:
        """Return the open lock file, which is locked."""
        for _ in range(_TRIES):
            descriptor = os.open(self.file, _FLAGS, 0o666)
            try:
                self._lock(descriptor)
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its holder has just removed the file
        raise FolderInUse(f"{self.file.parent} is taken and left again and again by others: pass another folder.")

    def _lock(self, descriptor: int) -> None:
        try:
            if fcntl is None:
                raise OSError
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._refusal(self._holder(descriptor)) from None
        except OSError:  # there are no locks here
            holder = self._holder(descriptor)
            if holder is not None and not holder.has_ended():
                raise self._refusal(holder) from None

    def _holder(self, descriptor: int) -> Holder | None:
        return Holder.read(os.pread(descriptor, _LARGEST, 0).decode("utf8", "replace"))

    def _refusal(self, holder: Holder | None) -> FolderInUse:
        who = "another process" if holder is None else str(holder)
        away = ""
        if holder is not None and holder.host != socket.gethostname():
            away = f" (if that process has ended, remove {self.file})"
        return FolderInUse(
            f"{self.file.parent} is being written by another {self._work}, {who}: wait for its end or stop it{away}, "
            "or pass another folder."
        )

    @property
    def descriptor(self) -> int:
        """Number of the open file; a child process that is given it holds the lock, too, until it ends."""
        return self._descriptor

    def release(self) -> None:
        """Release the lock; calling it twice is harmless."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            self.file.unlink()
        self._drop()

    def _drop(self) -> None:
        """Close the file without releasing the folder, as a fork does with its copy."""
        _HELD.discard(self)
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock of a file, and hold it; for short updates of shared files.

    The lock is that of the system on an empty file next to it, so a killed process leaves none behind. Without such
    locks, as on Windows, nothing is locked.

    Args:
        path: The file, whose folder is there; it may be replaced meanwhile.

    Raises:
        OSError: The folder cannot be written.
    """
    descriptor = os.open(path.with_name(f".{path.name}{LOCK_FILE}"), _FLAGS, 0o666)
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # closing does not release it while a fork has the file open
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


_HELD: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _drop_all() -> None:
    for lock in list(_HELD):
        lock._drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
