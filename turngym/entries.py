"""Entry points from the metadata of installed packages; a package with broken metadata affects no other."""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from turngym.errors import error_text
from turngym.text import printable

if TYPE_CHECKING:
    import importlib.metadata

_MOST_OF_A_PACKAGE = 100
"""Maximum number of entry points per package."""
_LONGEST_NAME = 300
_LONGEST_FILE = 2**16
_labels: dict[str, tuple[str, str]] = {}
"""Folder of the metadata of a package -> what :func:`_label` returns; reading it is slow."""


class Entry(NamedTuple):
    """An entry point of a package.

    Args:
        package: Name and version of the package; empty if unknown.
        name: Name of the entry point.
        value: Target: ``"package.module"`` or ``"package.module:function"``.
        point: The entry point to load; None if it must not be loaded.
        error: Reason for not loading it.
    """

    package: str
    name: str
    value: str
    point: importlib.metadata.EntryPoint | None = None
    error: str = ""


def declared(group: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of the entry points of a group, read from the files of installed packages.

    ``importlib.metadata`` would cost ``import turngym`` several times as much. Packages in archives are left out.

    Args:
        group: The group.
    """
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as found:
            for each in found:
                if each.name.endswith((".dist-info", ".egg-info")):
                    yield from _declared_in(f"{each.path}/entry_points.txt", f"[{group}]")


def _declared_in(path: str, section: str) -> Iterator[tuple[str, str]]:
    if not os.path.isfile(path):  # most packages have none; a pipe would never end
        return
    with open(path, encoding="utf8", errors="replace") as file:
        text = file.read(_LONGEST_FILE)
    lines = [line.strip() for line in text.partition(f"{section}\n")[2].splitlines()]
    own = list(itertools.takewhile(lambda line: not line.startswith("["), lines))
    for line in own[:_MOST_OF_A_PACKAGE]:
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            yield name.strip(), value.strip()


def entries(group: str) -> list[Entry]:
    """Return the entry points of a group, sorted, with an error entry for every package that cannot be read.

    They are re-read after a folder of ``sys.path`` has changed.

    Args:
        group: The group.
    """
    return list(_entries(group, tuple((folder, _changed(folder)) for folder in sys.path)))


def _changed(folder: str) -> tuple[int, int]:
    try:
        found = os.stat(folder or ".")
    except (OSError, ValueError):
        return 0, 0
    return found.st_ino, found.st_mtime_ns


@functools.lru_cache(maxsize=8)
def _entries(group: str, places: tuple[tuple[str, tuple[int, int]], ...]) -> list[Entry]:
    found: list[Entry] = []
    counts: Counter[str] = Counter()
    for each in sorted(_read(group), key=lambda each: each[:3]):
        counts[each.package] += 1
        if counts[each.package] <= _MOST_OF_A_PACKAGE:
            found.append(each)
    return found + [
        Entry(package, "", "", None, f"it has {count} entry points; {_MOST_OF_A_PACKAGE} of them are loaded")
        for package, count in counts.items()
        if count > _MOST_OF_A_PACKAGE
    ]


def _read(group: str) -> Iterator[Entry]:
    import importlib.metadata  # here, because it costs `import turngym` time

    try:
        points = list(importlib.metadata.entry_points(group=group))
    except Exception:  # the files of one package are broken: each is read by itself
        seen: set[str] = set()
        for package in importlib.metadata.distributions():
            yield from _of_package(package, group, seen)
        return
    labels: dict[int, str] = {0: ""}
    for point in points:
        key = 0 if point.dist is None else id(point.dist)
        if point.dist is not None and key not in labels:
            labels[key], _ = _label(point.dist)
        yield _entry(point, labels[key])


def _of_package(package: importlib.metadata.Distribution, group: str, seen: set[str]) -> Iterator[Entry]:
    """Yield the entry points of a package, unless one of its name has been seen, which was found first."""
    name, error = _label(package)
    if name in seen:
        return
    seen.add(name)
    try:
        points = [point for point in package.entry_points if point.group == group]
    except Exception as problem:  # a file that is not valid
        yield Entry(name, "", "", None, f"its entry points cannot be read ({error or error_text(problem)})")
        return
    for point in points:
        yield _entry(point, name)


def _entry(point: importlib.metadata.EntryPoint, label: str) -> Entry:
    match = point.pattern.match(point.value)
    error = "" if match else "its value is not written package.module or package.module:function"
    return Entry(label, shortened(point.name), shortened(point.value), point if match else None, error)


def _label(package: importlib.metadata.Distribution) -> tuple[str, str]:
    """Return name and version of a package, and why they cannot be read; then the name is its folder's."""
    path = str(getattr(package, "_path", ""))
    if not path or path not in _labels:
        try:
            metadata = package.metadata
            _labels[path] = shortened(f"{metadata['Name']} {metadata['Version']}"), ""
        except Exception as problem:  # a file that is absent or not valid
            folder = path.rpartition("/")[2]
            _labels[path] = shortened(folder or "an unknown package"), error_text(problem)
    return _labels[path]


def shortened(text: str) -> str:
    r"""Return a name for display: on one line, of bounded length, without terminal control characters.

    >>> shortened("a\x1b[2J" + 400 * "b") == "a\\x1b[2J" + 292 * "b" + "..."
    True
    """
    shown = printable(text[: _LONGEST_NAME + 1])
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}..."
