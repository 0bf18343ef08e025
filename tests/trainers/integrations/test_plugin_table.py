"""The table of the plug-ins says what is installed and tested, and every page and example that it stands for exists."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from plugin_examples import EXAMPLES, ROOT

PLUGINS = ROOT / "trainers" / "integrations"
TABLE = [line for line in (PLUGINS / "README.md").read_text("utf8").splitlines() if line.startswith("| [`")]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE]


def package(row: list[str]) -> str:
    """Return the package that a row is about, without its extras."""
    found = re.match(r"\[`([\w.-]+)", row[0])
    assert found, row
    return found[1]


def installed(name: str, version: str) -> set[str]:
    """Return the versions of a package in the environments beside this one whose requirements ask for a version."""
    asks = re.compile(rf"(?m)^{re.escape(name)}(\[\w+\])?=={re.escape(version)}$")
    files = ROOT.glob("tests/requirements/**/*.txt")
    environments = {ROOT / ".venvs" / file.stem for file in files if asks.search(file.read_text("utf8"))}
    paths = [str(each) for folder in environments for each in (folder, *folder.glob("lib/python*/site-packages"))]
    found = importlib.metadata.distributions(name=name, path=paths)
    return {distribution.version for distribution in found}


def test_every_cell_is_filled() -> None:
    assert len(ROWS) >= 5
    assert all(len(row) == 6 and all(row) for row in ROWS)


def test_the_test_of_a_row_exists() -> None:
    for row in ROWS:
        for file, name in re.findall(r"`(test_\w+\.py)::(\w+)`", row[5]) or [("", "")]:
            assert f"def {name}(" in next((ROOT / "tests").rglob(file)).read_text("utf8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_version_of_a_row_is_the_installed_one(row: list[str]) -> None:
    found = installed(package(row), row[1])
    if not found:
        pytest.skip(f"{package(row)} is in no environment here: run make test-integration")
    assert row[1] in found


def test_make_installs_the_version_of_a_row() -> None:
    for row in ROWS:
        asked = f"{package(row)}(\\[\\w+\\])?=={re.escape(row[1])}"
        assert re.search(asked, "".join(file.read_text("utf8") for file in ROOT.glob("tests/requirements/**/*.txt")))


def test_a_row_has_a_page() -> None:
    for row in ROWS:
        page = re.search(r"\]\((\w+\.md)\)", row[0])
        assert page and (PLUGINS / page[1]).is_file()


def test_every_example_is_run_by_a_test() -> None:
    paths = Path(__file__).parents[2].rglob("test_*.py")
    known = {"tiny_model", "hf_server"}.union(*(re.findall(r"\w+", path.read_text("utf8")) for path in paths))
    assert [path.stem for path in EXAMPLES.glob("*.py") if path.stem not in known] == []
