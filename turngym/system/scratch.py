"""Temporary folders that no killed process leaves behind: the next one removes them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path

from turngym.errors import FolderInUse
from turngym.system.locks import LOCK_FILE, FolderLock, Holder

_PREFIX = "turngym-"
_MARK = ".scratch"
"""File that distinguishes these folders from the folder of a killed run with such a name, which has a lock as well."""
_WORK = "process"
_LONGEST_LOCK = 4096
_guard = threading.Lock()
_root: dict[int, tuple[Path, FolderLock]] = {}
"""Number of this process -> its folder; a fork has one of its own."""


def scratch_root() -> Path:
    """Return this process's folder for temporary ones, made with the first call, which removes those of dead ones.

    Everybody may enter it, since users of sandboxes have to reach what is in it, and only its owner may list it.
    """
    with _guard:
        found = _root.get(os.getpid())
        if found is None or not found[0].is_dir():
            _root.clear()
            found = _root[os.getpid()] = _made()
            weakref.finalize(found[1], _remove, found[0], os.getpid())
            remove_dead(Path(tempfile.gettempdir()), found[0])
        return found[0]


def _made() -> tuple[Path, FolderLock]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        path.chmod(0o711)
        (path / _MARK).touch()
        with contextlib.suppress(FolderInUse, FileNotFoundError):  # removed as a dead one before it was locked
            return path, FolderLock(path, _WORK)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def dead_folders(parent: Path) -> list[Path]:
    """Return the folders of this user's processes that have ended on this machine."""
    found = []
    for path in sorted(parent.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):
            if not _is_scratch(path):
                continue
            with (path / LOCK_FILE).open("rb") as file:
                holder = Holder.read(file.read(_LONGEST_LOCK).decode("utf8", "replace"))
            if holder is not None and holder.has_ended():
                found.append(path)
    return found


def remove_dead(parent: Path, own: Path) -> list[Path]:
    """Remove the folders of processes that have ended, and return them; those of others users and in use stay.

    Args:
        parent: Paths.
        own: This process's folder.
    """
    return [path for path in parent.glob(f"{_PREFIX}*") if path != own and remove_if_dead(path)]


def remove_if_dead(path: Path) -> bool:
    """Remove the folder of a process that has ended; return whether it was removed."""
    with contextlib.suppress(OSError, FolderInUse):
        if _is_scratch(path):
            with FolderLock(path, _WORK):
                shutil.rmtree(path)
                return True
    return False


def _is_scratch(path: Path) -> bool:
    """Return whether a process of this user made a folder; links and pipes, which would never end, are refused."""
    if path.is_symlink() or path.stat().st_uid != os.geteuid():
        return False
    return (path / _MARK).is_file() and (path / LOCK_FILE).is_file()
