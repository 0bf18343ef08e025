"""Public functions take paths as texts and as path objects."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turngym
from turngym.benchmarks import evaluate, load_submission, read_entries
from turngym.errors import ConfigError

PATH_ALONE = re.compile(r"\bPath\b")
CALLBACK = re.compile(r"Callable\[\[[^\]]*\]")


def public() -> Iterator[tuple[str, Any]]:
    """Yield all functions and methods of the names in ``__all__`` of any module, with their names."""
    names = ["turngym", *(each.name for each in pkgutil.walk_packages(turngym.__path__, "turngym."))]
    for module in names:
        if not re.search(r"\.(studies|examples|cli|__main__)\b", module) and has_names(module):
            try:
                package = importlib.import_module(module)
            except ModuleNotFoundError:  # an optional package is missing
                continue
            for name in getattr(package, "__all__", ()):
                yield from functions(f"{module}.{name}", getattr(package, name, None))


def has_names(module: str) -> bool:
    """Return whether a module has a list of public names, without importing it."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None and "__all__" in Path(spec.origin).read_text("utf8")


def functions(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    if inspect.isfunction(found):
        yield name, found
    elif inspect.isclass(found) and found.__module__.startswith("turngym"):
        for key, member in vars(found).items():
            method = getattr(member, "__func__", member)
            is_made = key == "__init__" and not dataclasses.is_dataclass(found)
            if inspect.isfunction(method) and (is_made or not key.startswith("_")):
                yield f"{name}.{key}", method


def test_no_public_function_takes_path_objects_alone() -> None:
    checked, wrong = 0, []
    for name, function in public():
        for parameter, annotation in function.__annotations__.items():
            text = CALLBACK.sub("", str(annotation))
            checked += "StrPath" in text
            if parameter != "return" and PATH_ALONE.search(text):
                wrong.append(f"{name}({parameter}: {annotation})")
    assert checked > 10 and not wrong


def test_paths_may_be_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evaluate("turngym/NumberLine-v0", "random", episodes=2, out="x")
    assert load_submission("x").path == Path("x") and load_submission(Path("x")).path == Path("x")
    assert [each.folder for each in read_entries(["x"])[0]] == [Path("x")]
    with pytest.raises(ConfigError):
        load_submission("nothing")
