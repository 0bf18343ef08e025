"""Small submissions for tests: played for real once, then copied with changes that a test chooses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turngym.__main__ import main

ENV = "turngym/FrozenLake-v0"
HOSTILE = '<img src=x onerror="alert(1)"></td></script><script>alert(2)</script>\x07\u202e'


def play(path: Path, agent: str = "random", *more: str, target: str = ENV, episodes: int = 6) -> Path:
    """Evaluate an agent through the command line and return the folder."""
    words = ["eval", target, "--agent", agent, "--episodes", str(episodes), "--out", str(path), *more]
    assert main(words) == 0
    return path


def changed(source: Path, target: Path, **changes: Callable[[Any], None]) -> Path:
    """Return a copy of a submission whose files ``metadata``, ``config`` or ``results`` were changed."""
    shutil.copytree(source, target)
    for name, change in changes.items():
        file = target / f"{name}.json"
        content = json.loads(file.read_text("utf8"))
        change(content)
        file.write_text(json.dumps(content), "utf8")
    return target


def rows_of(path: Path) -> list[Any]:
    """Return the episodes of a submission."""
    return [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]


def write_rows(path: Path, rows: list[Any]) -> None:
    """Write the episodes of a submission."""
    (path / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
