"""The table of tasks says how many lines they take, and the pages show that many."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "how-to" / "index.md"
ROWS = re.findall(r"^\| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \| (\d+) \|$", INDEX.read_text("utf8"), re.MULTILINE)


def code_lines(text: str) -> list[int]:
    """Return the lines of each code block, without blank lines and comments."""
    blocks = re.findall(r"```(?:python|sh)(?: title=\"[^\"]+\")?\n(.*?)```", text, re.DOTALL)
    return [
        sum(bool(line.strip()) and not line.strip().startswith("#") for line in block.splitlines()) for block in blocks
    ]


def test_there_are_ten() -> None:
    assert len(ROWS) == 10


@pytest.mark.parametrize(("task", "page", "lines"), ROWS)
def test_a_block_of_the_page_has_that_many_lines(task: str, page: str, lines: str) -> None:
    path = (INDEX.parent / page).resolve()
    if not path.exists():  # a page that lies beside the code
        path = ROOT / "trainers" / "integrations" / path.name
    counts = code_lines(path.read_text("utf8"))
    commands = re.findall(r"^turngym ", path.read_text("utf8"), re.MULTILINE)
    assert int(lines) in counts or (int(lines) == 1 and commands), f"{task}: {counts}"
