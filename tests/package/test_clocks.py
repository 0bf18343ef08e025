"""Durations come from the monotonic clock, so that nothing times out or hangs when the system clock jumps."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("turngym", "envs", "wrappers", "agents", "trainers", "benchmarks")
WALL = re.compile(r"\btime\.time(?:_ns)?\(\)|from time import .*\btime\b")
STAMP = re.compile(r"int\(time\.time\(\)\)")
"""A time that is only shown."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_wall_clock_only_dates_things(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*.py") if not path.is_symlink()]
    assert files
    for path in files:
        for line in path.read_text("utf8").splitlines():
            assert not WALL.search(STAMP.sub("", line)), f"{path}: {line.strip()}"
