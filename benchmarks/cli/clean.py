"""``turngym clean``: delete caches and the temporary folders of killed processes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from turngym.benchmarks.cli.options.parsing import parse
from turngym.storage.files import CACHES, cache_folder
from turngym.system.scratch import dead_folders, remove_if_dead
from turngym.terminal.console import Console


@dataclass(frozen=True)
class Arguments:
    """List or delete files outside of runs that turngym can recreate.

    These are caches (unpacked games, vectors of documents) and temporary folders of killed processes. Folders of runs,
    evaluations and tournaments, downloaded models and tokens of servers are never deleted.

    Args:
        yes: Delete what is listed.
    """

    yes: bool = False


def main(argv: Sequence[str]) -> int:
    """List, and delete if asked to; the exit status is 1 if something could not be deleted."""
    arguments = parse(Arguments, argv, "clean")
    console = Console(highlight=False)
    caches, scratch = list(_caches()), dead_folders(Path(tempfile.gettempdir()))
    sizes = {path: _size(path) for path in (*caches, *scratch)}
    for path, size in sizes.items():
        console.print(f"{_shown(size):>9}  {path}", markup=False, soft_wrap=True)
    if not sizes:
        console.print("nothing to delete")
        return 0
    total = _shown(sum(sizes.values()))
    if not arguments.yes:
        console.print(f"{total} in all: `turngym clean --yes` deletes it", markup=False)
        return 0
    for path in caches:
        shutil.rmtree(path, ignore_errors=True)
    for path in scratch:
        remove_if_dead(path)
    left = [path for path in sizes if path.exists()]
    console.print(f"deleted {total}" if not left else f"could not delete {', '.join(map(str, left))}", markup=False)
    return int(bool(left))


def _caches() -> Iterator[Path]:
    """Yield the cache folders that exist; a link to a folder elsewhere is somebody's own."""
    for name in CACHES:
        path = cache_folder(name)
        if path.is_dir() and not path.is_symlink():
            yield path


def _size(folder: Path) -> int:
    """Return the size of the files in a folder; links are not followed."""
    paths = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in paths if path.is_symlink() or path.exists())


def _shown(size: int) -> str:
    """Return a size in decimal units.

    >>> _shown(12), _shown(3_400_000), _shown(2_000_000_000)
    ('0.0 MB', '3.4 MB', '2.0 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
