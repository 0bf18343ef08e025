"""The front doors: what `dir()` shows of a package can be imported from it, and nothing is imported before its use."""

import importlib
import pkgutil
import subprocess
import sys

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
