"""The packaging contract: one import name, every folder shipped, one direction of imports."""

import ast
import doctest
import importlib
import importlib.util
import pkgutil
import sys
import tomllib
from pathlib import Path

import pytest

import turngym

ROOT = Path(__file__).parents[2]
LAYERS = ["envs", "wrappers", "agents", "trainers", "benchmarks"]  # each may import only those before it


def source_packages() -> set[str]:
    """Return every package of ours; studies are run from a checkout and not shipped."""
    own = (path.parent for path in (ROOT / "turngym").glob("*/__init__.py"))
    found = {"turngym", *(f"turngym.{folder.name}" for folder in own if folder.name not in LAYERS)}
    for layer in LAYERS:
        for init in (ROOT / layer).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            if parts[:2] != ("benchmarks", "studies"):
                found.add("turngym." + ".".join(parts))
    return found


def test_every_source_folder_is_packaged() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    assert set(config["tool"]["setuptools"]["packages"]) == source_packages()


@pytest.mark.parametrize("layer", LAYERS)
def test_the_view_points_at_the_source(layer: str) -> None:
    view = ROOT / "turngym" / layer
    if not view.is_dir():
        pytest.skip("checked out without symbolic links")
    assert view.resolve() == (ROOT / layer).resolve()


def test_only_one_import_name() -> None:
    stray = [name for name in sys.modules if name.partition(".")[0] in LAYERS]
    assert not stray


def imported_layers(source: str) -> set[str]:
    """Return the layers that one file imports, whichever way the import is written."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    parts = (name.split(".") for name in names)
    return {part[1] for part in parts if part[0] == "turngym" and len(part) > 1 and part[1] in LAYERS}


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    above = set(LAYERS[LAYERS.index(layer) + 1 :])
    for path in (ROOT / layer).rglob("*.py"):
        source = path.read_text("utf8")
        if "from turngym import" in source or any(f"turngym.{each}" in source for each in above):
            assert not imported_layers(source) & above, path


MODULES = [m.name for m in pkgutil.walk_packages(turngym.__path__, "turngym.") if not m.name.endswith("__main__")]


def _has_examples(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and ">>>" in Path(str(spec.origin)).read_text("utf8")


@pytest.mark.parametrize("name", [each for each in MODULES if _has_examples(each)])
def test_docstring_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"needs the optional package {error.name}")
    runner = doctest.DocTestRunner()
    for docstring in doctest.DocTestFinder().find(module):
        if docstring.examples:  # an empty run costs as much: it looks at every file whose source was read before
            runner.run(docstring)
    assert not runner.failures and runner.tries


def test_every_module_can_be_imported_with_what_it_needs() -> None:
    for name in MODULES:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert not str(error.name).startswith("turngym"), f"{name} imports {error.name}, which does not exist"
