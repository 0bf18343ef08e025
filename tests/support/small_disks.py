"""A small disk, a real one, and how it is filled."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 8 MiB, apart from pytest's folders, which it would hold up if this process were killed."""
    disk = Path(tempfile.mkdtemp(prefix="small-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        disk.rmdir()
        pytest.skip("there is no mount command for a small disk")
    if made.returncode:
        disk.rmdir()
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        disk.rmdir()


def fill(disk: Path) -> None:
    """Write until there is no room left at all."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
