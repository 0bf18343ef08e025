"""What ``--fast`` leaves out: tests that are there, and never all tests of a package."""

import re
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parents[1]
TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def slow_names() -> set[str]:
    lines = (TESTS / "slow_tests.txt").read_text("utf8").splitlines()
    return {line.split()[1] for line in lines if not line.startswith("#")}


def names_in(file: Path) -> list[str]:
    return [f"{file.name}::{name}" for name in TEST.findall(file.read_text("utf8"))]


def without_a_fast_test(folders: Iterable[Path], slow: set[str]) -> list[str]:
    """Return the folders whose own files hold slow tests only."""
    found = []
    for folder in folders:
        files = list(folder.glob("test_*.py"))
        names = {name for file in files if file.name not in slow for name in names_in(file)}
        if files and names <= slow:
            found.append(folder.relative_to(TESTS).as_posix())
    return found


def folders() -> list[Path]:
    return [folder for folder in (TESTS, *TESTS.rglob("*")) if folder.is_dir()]


def test_every_package_with_tests_has_a_fast_one() -> None:
    assert without_a_fast_test(folders(), slow_names()) == []


def test_a_package_whose_tests_are_all_slow_is_found() -> None:
    """Negative oracle, by tests and by files."""
    rooms = TESTS / "trainers" / "settings", TESTS / "agents" / "players"
    slow = {name for file in rooms[0].glob("test_*.py") for name in names_in(file)}
    slow |= {file.name for file in rooms[1].glob("test_*.py")}
    assert sorted(without_a_fast_test(folders(), slow)) == ["agents/players", "trainers/settings"]


def test_every_slow_test_is_there() -> None:
    files = list(TESTS.rglob("test_*.py"))
    known = {file.name for file in files}.union(*map(names_in, files))
    assert sorted(slow_names() - known) == []


def test_no_two_files_have_one_name() -> None:
    """They are told apart by their names alone."""
    names = [file.name for file in TESTS.rglob("test_*.py")]
    assert len(names) == len(set(names))


def test_the_mark_of_integration_tests_is_where_it_is_looked_for() -> None:
    """To run a part of the tests, `conftest.py` reads the files that hold the mark or name a module of `support`."""
    for path in TESTS.rglob("*.py"):
        text = path.read_text("utf8")
        assert not re.search(r"(?<!pytest\.)mark\.integration\b", text), f"{path}: write the whole name of the mark"
        if re.search(r"pytest\.mark\.integration\b", text):
            is_read = path.parent == TESTS / "support" or path.name.startswith("test_") or path.name == "conftest.py"
            assert is_read or path.name == "simulated_device_cases.py", f"{path}: move its fixtures to tests/support"
