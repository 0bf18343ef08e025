"""Error messages of the command line: one to three lines, with the way out."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from turngym.errors import TurngymError
from turngym.loading import own_frame, own_line, said

DONE, BUG, USAGE = 0, 1, 2

_REASONS: dict[int, tuple[str, str]] = {
    errno.EACCES: ("permission denied", "choose another path, or change the permissions"),
    errno.EPERM: ("permission denied", "choose another path, or change the permissions"),
    errno.EROFS: ("the file system is read-only", "choose a path on another one"),
    errno.ENOSPC: ("no space left on the device", "free some space, or choose a path on another device"),
    errno.EDQUOT: ("the disk quota is exceeded", "free some space, or choose another path"),
    errno.EFBIG: ("the file would be too large", "choose a path on another file system"),
    errno.ENOENT: ("there is no such file or folder, and none can be made there", "check the path"),
    errno.EISDIR: ("it is a folder, where a file is needed", "pass the path of a file"),
    errno.ENOTDIR: ("a part of the path is a file, where a folder is needed", "choose another path"),
    errno.EEXIST: ("something of that name exists already", "choose another path"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.ELOOP: ("its symbolic links go round in circles", "check the path"),
    errno.EMFILE: ("too many open files", "raise the limit (ulimit -n), or use fewer environments"),
    errno.EADDRINUSE: ("the address is already in use", "choose another port"),
    errno.ECONNREFUSED: ("the connection was refused", "check that the server runs, and its address"),
}

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def resumable(folder: Path | None, finished: str) -> Iterator[None]:
    """Add the folder and a hint on ``--resume`` to errors of a full disk.

    Args:
        folder: Folder of finished parts; None keeps them in memory.
        finished: Contents of the folder, such as ``"episodes"``.

    Raises:
        TurngymError: The disk is full.
    """
    try:
        yield
    except OSError as error:
        if folder is None or error.errno not in _FULL:
            raise
        reason = _REASONS[error.errno][0]
        raise TurngymError(
            f"{folder}: {reason}: make room, then continue with --resume; the finished {finished} are kept."
        ) from error


def explain(error: BaseException, words: Sequence[str] = ()) -> tuple[str, int]:
    """Return what to print for an exception that ended a command, and its exit status.

    Args:
        error: The exception.
        words: The words of the command, for the way to the traceback.

    >>> explain(PermissionError(13, "Permission denied", "runs/mine"))
    ('error: runs/mine: permission denied: choose another path, or change the permissions.', 2)
    """
    if isinstance(error, TurngymError):
        return f"error: {error}", USAGE
    if own_frame(error) is not None:
        return f"error: {said(error)}{own_line(error)}", USAGE
    if isinstance(error, OSError):
        return f"error: {of_system(error)}", USAGE
    if isinstance(error, MemoryError):
        return "error: out of memory: use fewer environments, smaller batches or a smaller model.", USAGE
    command = " ".join(["turngym", "--debug", *words[:1], *(["..."] if len(words) > 1 else [])])
    return f"error: {said(error)}\nThis is a bug in turngym: please report it with what `{command}` prints.", BUG


def of_system(error: OSError) -> str:
    """Return an error of the operating system as a sentence: the path, the reason, the way out.

    >>> of_system(OSError(28, "No space left on device"))
    'no space left on the device: free some space, or choose a path on another device.'
    """
    path = error.filename if error.filename2 is None else error.filename2
    place = "" if path is None or isinstance(path, int) else f"{_shown(path)}: "
    if error.errno in _REASONS:
        reason, way_out = _REASONS[error.errno]
        return f"{place}{reason}: {way_out}."
    reason = (error.strerror or " ".join(str(error).split()) or type(error).__name__).rstrip(".")
    return f"{place}{reason[:1].lower()}{reason[1:]}: check it, or choose another."


def _shown(path: object) -> str:
    """Return a path as it was meant: one that is written under a temporary name at first goes by its own."""
    text = path.decode("utf8", "replace") if isinstance(path, bytes) else str(path)
    folder, sign, name = text.rpartition("/")
    if name == ".lock":  # the folder was meant
        return _shown(folder or ".")
    if name.startswith(".") and name.endswith(".tmp"):
        name = name.removeprefix(".").removesuffix(".tmp").rpartition(".")[0] or name
    shown = f"{folder}{sign}{name}"
    return shown if len(shown) <= 200 else f"{shown[:100]}...{shown[-60:]}"
