"""Packages with a secret in them, installed where the system keeps its own, for as long as a test runs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECRET = "hidden_solution_3f9c"
SYSTEM_FOLDERS = (
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3.{minor}/site-packages",
    "/usr/local/lib/python3.{minor}/dist-packages",
    "/usr/lib/python3.{minor}",
    "/usr/share/python-wheels",
    "/usr/local/share/venv/lib",
)
"""Where distributions and users put packages, and where a copy could be left."""
SEARCH = f"""
import os
seen, hits = 0, []
for top in ('/bin', '/dev', '/etc', '/home', '/lib', '/lib64', '/opt', '/root', '/run', '/srv', '/tmp', '/usr', '/var'):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if '{SECRET}' in path: hits.append(path)
            if not os.path.isfile(path): continue
            try:
                with open(path, 'rb') as file: content = file.read(2_000_000)
            except OSError: continue
            seen += 1
            if b'{SECRET}' in content: hits.append(path)
print(seen > 100, hits)
"""


def system_minor() -> str:
    """Return the number of the system's Python after 3."""
    command = ["/usr/bin/python3", "-c", "import sys; print(sys.version_info.minor)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def folders(places: list[Path]) -> Iterator[None]:
    """Make folders that belong to the system, and remove them at the end with what they hold."""
    if os.geteuid() != 0:
        pytest.skip("only root can install packages for all users")
    made = []
    try:
        for place in places:
            for folder in reversed([place, *place.parents]):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
        yield
    finally:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def plant() -> Iterator[list[Path]]:
    """Put a package with the secret, in text and in bytecode, into every folder of the system; gives the packages."""
    places = [Path(folder.format(minor=system_minor()), f"turngym_{os.getpid()}") for folder in SYSTEM_FOLDERS]
    with folders([place / "__pycache__" for place in places]):
        for place in places:
            (place / "solutions.py").write_text(f"ANSWER = '{SECRET}'\n")
            (place / "__pycache__" / "solutions.pyc").write_bytes(SECRET.encode())
        yield places
