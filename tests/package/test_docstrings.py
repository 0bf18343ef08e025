"""Public methods are described: where they are declared, and where an override differs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECLARING = (
    "envs/core.py",
    "envs/settings.py",
    "envs/snapshots.py",
    "envs/pictures.py",
    "envs/sets.py",
    "envs/adapters/replayed.py",
    "envs/textworlds/nethack/play.py",
    "envs/tools/terminal/shell_env.py",
)
WRAPPING = ("wrappers/core.py",)


def methods(path: Path) -> list[tuple[str, bool]]:
    """Return name and whether it has a docstring, of every public method of a file's classes."""
    classes = [node for node in ast.parse(path.read_text("utf8")).body if isinstance(node, ast.ClassDef)]
    public = [node for each in classes if not each.name.startswith("_") for node in each.body]
    defined = [node for node in public if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.name, ast.get_docstring(node) is not None) for node in defined if not node.name.startswith("_")]


@pytest.mark.parametrize(("folder", "bases"), [("envs", DECLARING), ("wrappers", WRAPPING)])
def test_only_overrides_of_described_methods_have_no_docstring(folder: str, bases: tuple[str, ...]) -> None:
    described = {name for base in bases for name, is_described in methods(ROOT / base) if is_described}
    assert len(described) > 8
    bare = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, is_described in methods(path)
        if not is_described and name not in described and (name, True) not in methods(path)  # setters
    }
    assert not bare
