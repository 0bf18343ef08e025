"""Files of a task folder, read within bounds and without following links; nothing of them is run."""

from __future__ import annotations

import base64
import json
import os
import posixpath
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from turngym.errors import ConfigError

MOST_FILES = 10_000
MOST_BYTES = 64 * 2**20
"""Files, and bytes of all of them, in one folder of a task."""
_DEEPEST = 40
_KINDS = ("file", "folder", "link", "special")
_ENTRY_BYTES = 200
"""Bytes that an entry counts for in a packed tree, besides the content of a file."""
_LARGEST_TREE = MOST_BYTES + _ENTRY_BYTES * MOST_FILES


class Entry(NamedTuple):
    """A file, folder, symbolic link, or special file.

    Args:
        kind: ``"file"``, ``"folder"``, ``"link"``, or ``"special"`` for a pipe, socket or device.
        mode: Permissions.
        data: Content of a file, target of a link, type of a special file (``stat.S_IFMT``, in decimal).
    """

    kind: str
    mode: int = 0o644
    data: bytes = b""


Tree = Mapping[str, Entry]
"""Relative path -> entry; folders come before what they hold."""


def read_bytes(path: Path, largest: int) -> bytes:
    """Return the content of a regular file, never that of what a link points to.

    Raises:
        ConfigError: It is missing, something else, or too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; expected a regular file.") from error
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(f"{path} must be a regular file.")
        data = file.read(largest + 1)
    if len(data) > largest:
        raise ConfigError(f"{path} has more than {largest:,} bytes, which are not read.")
    return data


def read_text(path: Path, largest: int) -> str:
    """Return the text of a regular file.

    Raises:
        ConfigError: It cannot be read (see :func:`read_bytes`), or is not UTF-8.
    """
    try:
        return read_bytes(path, largest).decode("utf8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8: {error.reason}.") from error


def read_tree(folder: Path) -> dict[str, Entry]:
    """Return everything below a folder; empty where there is no such folder.

    Raises:
        ConfigError: It is too large, or holds a link that leaves it, a pipe or a device.
    """
    found: dict[str, Entry] = {}
    left = MOST_BYTES
    if folder.is_symlink():
        raise ConfigError(f"{folder} is a symbolic link: tasks hold their files themselves.")
    for path, name in _below(folder, "", 0) if folder.is_dir() else ():
        if len(found) >= MOST_FILES:
            raise ConfigError(f"{folder} holds more than {MOST_FILES:,} files, which are not read.")
        found[name] = entry = _entry(path, name, left)
        left -= len(entry.data)
    return found


def _below(folder: Path, prefix: str, depth: int) -> Iterator[tuple[Path, str]]:
    if depth > _DEEPEST:
        raise ConfigError(f"{folder} is nested more than {_DEEPEST} folders deep.")
    with os.scandir(folder) as found:
        names = [each.name for _, each in zip(range(MOST_FILES + 1), found, strict=False)]
    for each in sorted(names):
        path, name = folder / each, f"{prefix}{each}"
        yield path, name
        if path.is_dir() and not path.is_symlink():
            yield from _below(path, f"{name}/", depth + 1)


def _entry(path: Path, name: str, largest: int) -> Entry:
    about = path.lstat()
    if not name.isprintable():
        raise ConfigError(f"{str(path)!r} has a name with characters that cannot be printed.")
    if stat.S_ISLNK(about.st_mode):
        target = os.readlink(path)
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if posixpath.isabs(target) or place == ".." or place.startswith("../"):
            raise ConfigError(f"{path} is a link to {target!r}, which leaves the folder: copy the file instead.")
        return Entry("link", 0o777, target.encode())
    if stat.S_ISDIR(about.st_mode):
        return Entry("folder", 0o755)
    return Entry("file", 0o755 if about.st_mode & 0o100 else 0o644, read_bytes(path, largest))


def packed(tree: Tree) -> str:
    """Return a tree as the text that a box unpacks (see :mod:`turngym.envs.tools.harbor.inside`)."""
    return packed_rows((name, each, 0) for name, each in tree.items())


def packed_rows(rows: Iterable[tuple[str, Entry, int]]) -> str:
    """Return path, entry and time of modification of files as a packed tree."""
    found = [[name, each.kind, each.mode, stamp, base64.b64encode(each.data).decode()] for name, each, stamp in rows]
    return base64.b64encode(zlib.compress(json.dumps(found).encode(), 1)).decode()


def unpacked(text: str, most: int = _LARGEST_TREE) -> list[tuple[str, Entry, int]]:
    """Return path, entry and time of modification (nanoseconds) of what :func:`packed` or a box packed.

    Args:
        text: The packed tree; a command in a box may have made it.
        most: Bytes of its files, where each entry counts for 200 more.

    Raises:
        ValueError: It is not a packed tree, or a larger one.

    >>> unpacked(packed({"a.txt": Entry("file", 0o644, b"hi")}))
    [('a.txt', Entry(kind='file', mode=420, data=b'hi'), 0)]
    """
    if not text:
        return []
    reader = zlib.decompressobj()
    content = reader.decompress(base64.b64decode(text, validate=True), 2 * most)
    values = sum(content.count(mark) for mark in (b",", b"[", b"{"))  # about six for an entry
    if reader.unconsumed_tail or values > 10 * (most // _ENTRY_BYTES):
        raise ValueError(f"a tree of more than {most:,} bytes")
    found = []
    for name, kind, mode, stamp, data in json.loads(content):
        if kind not in _KINDS or not isinstance(name, str) or type(mode) is not int or type(stamp) is not int:
            raise ValueError(f"an entry {str(name)[:60]!r} of a tree")
        entry = Entry(kind, mode & 0o7777, base64.b64decode(data))
        most -= _ENTRY_BYTES + (len(entry.data) if kind == "file" else 0)
        if most < 0:
            raise ValueError("a tree of more bytes than it may have")
        found.append((name, entry, stamp))
    return found
