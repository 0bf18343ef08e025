"""The front doors: what `dir()` shows of a package can be imported from it, and nothing is imported before its use."""

import importlib
import pkgutil
import subprocess
import sys
import types

import pytest

import turngym
from turngym.exports import lazy_names

PACKAGES = ["turngym", "turngym.envs", "turngym.agents", "turngym.trainers", "turngym.benchmarks"]
MOST_NAMES = 20


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_resolves(package: str) -> None:
    module = importlib.import_module(package)
    assert 0 < len(module.__all__) <= MOST_NAMES
    for name in module.__all__:
        try:
            assert getattr(module, name) is not None
        except ModuleNotFoundError as error:
            pytest.skip(f"needs the optional package {error.name}")


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_just_the_public_names(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_public_name(package: str) -> None:
    """Importing a module sets it as an attribute of its package, in the place of a name that is imported lazily."""
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert not modules & set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_imported_before_its_use(package: str) -> None:
    """The environments' registration needs Gymnasium and NumPy; a package adds none of its own modules to that."""
    script = (
        "import sys, turngym; before = set(sys.modules); "
        f"import {package}; print(*sorted(set(sys.modules) - before), 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() in (["False"], [package, "False"])


def test_an_unknown_name_is_an_attribute_error() -> None:
    get, _ = lazy_names("turngym", {"turngym.envs.vector": ("make_vec",)})
    assert get("make_vec") is turngym.make_vec
    with pytest.raises(AttributeError, match="module 'turngym' has no attribute 'make_vek'") as caught:
        get("make_vek")
    assert caught.value.name == "make_vek" and caught.value.obj is turngym


def test_a_moved_module_does_not_take_the_place_of_a_public_name() -> None:
    get, _ = lazy_names("turngym", {"turngym.envs.vector": ("make_vec",)})
    moved = types.ModuleType("turngym.envs.make_vec")
    setattr(turngym, "make_vec", moved)  # noqa: B010  (as the import system does after an import by the old path)
    assert turngym.make_vec is get("make_vec")


def test_a_renamed_name_works_with_a_warning() -> None:
    from turngym.benchmarks.leaderboard import entries

    with pytest.warns(DeprecationWarning, match=r"entries\.Row is now Entry"):
        assert getattr(entries, "Row") is entries.Entry  # noqa: B009  (type checkers see no old names)
    with pytest.raises(AttributeError, match="no attribute 'Rows'"):
        getattr(entries, "Rows")  # noqa: B009
