import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngym import moved

ROOT = Path(__file__).parents[2]


@pytest.fixture
def old_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two moves: of a module and of a package."""
    before = set(sys.modules)
    monkeypatch.setattr(
        moved, "MOVED", {"turngym.errors_of_old": "turngym.errors", "turngym.worlds_of_old": "turngym.envs.tools"}
    )
    yield
    for name in set(sys.modules) - before:
        if "_of_old" in name:
            del sys.modules[name]


def test_an_old_path_gives_the_same_module(old_paths: None) -> None:
    with pytest.warns(DeprecationWarning, match=r"turngym\.errors_of_old has moved to turngym\.errors") as caught:
        old = importlib.import_module("turngym.errors_of_old")
    assert caught[0].filename == __file__
    assert old is importlib.import_module("turngym.errors")
    assert old.__spec__ is not None and old.__spec__.name == "turngym.errors" == old.__name__


def test_modules_of_a_moved_package_are_not_loaded_twice(old_paths: None) -> None:
    with pytest.warns(DeprecationWarning):
        old = importlib.import_module("turngym.worlds_of_old.calls")
    assert old is importlib.import_module("turngym.envs.tools.calls")


def test_an_import_statement_warns_at_its_own_line(old_paths: None) -> None:
    with pytest.warns(DeprecationWarning) as caught:
        from turngym.errors_of_old import ConfigError  # type: ignore[import-not-found]
    assert [each.filename for each in caught] == [__file__]
    assert ConfigError is importlib.import_module("turngym.errors").ConfigError


def test_what_has_not_moved_is_not_warned_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(importlib.import_module("turngym.types"))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("turngym.no_such_module")


def test_current_of_paths_in_files(old_paths: None) -> None:
    assert moved.current("turngym.worlds_of_old.calls:Call") == "turngym.envs.tools.calls:Call"
    assert moved.current("turngym.errors_of_old") == "turngym.errors"
    assert moved.current("turngym.errors_of_older") == "turngym.errors_of_older"
    assert moved.current("my_package.envs:Env") == "my_package.envs:Env"


def test_the_table_names_modules_that_exist_and_no_path_twice_moved() -> None:
    for old, new in moved.MOVED.items():
        assert importlib.util.find_spec(new) is not None, f"{old} is said to be at {new}"
        assert moved.current(new) == new, f"{old} has moved to {new}, which has moved itself"


def test_no_module_stands_where_another_has_moved_away() -> None:
    places = {old: ROOT.joinpath(*old.split(".")) for old in moved.MOVED}
    assert not [
        old for old, place in places.items() if place.with_suffix(".py").exists() or (place / "__init__.py").exists()
    ]
