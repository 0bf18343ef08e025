"""The page on installing names every extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_extras_names_each_one() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lines = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/start/install.md").read_text(), re.MULTILINE)
    assert sorted(name for line in lines for name in re.findall(r"`(.+?)`", line)) == sorted(extras)
