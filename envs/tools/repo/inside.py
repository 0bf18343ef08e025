"""The program that runs test cases in the sandbox, which is sent it as text. It holds nothing that is expected."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from typing import Any

_FOLDER = "/tmp/repository"
_package, _modules = [""], list[str]()


def install(files: dict[str, str], package: str, modules: list[str]) -> None:
    """Write a package where it can be imported."""
    sys.dont_write_bytecode = True
    for name, text in files.items():
        path = os.path.join(_FOLDER, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf8", errors="surrogateescape") as file:
            file.write(text)
    sys.path.insert(0, _FOLDER)
    _package[0] = package
    _modules[:] = modules


def run_cases(texts: list[str]) -> list[tuple[str, Any]]:
    """Return what came of some cases."""
    return [run_case(text) for text in texts]


def run_case(text: str) -> tuple[str, Any]:
    """Return what came of a case."""
    space: dict[str, Any] = {}
    *before, last = ast.parse(text).body
    assert isinstance(last, ast.Expr)
    try:
        for name in _modules:
            space[name] = importlib.import_module(f"{_package[0]}.{name}")
        exec(compile(ast.Module(before, []), "<case>", "exec"), space)
        return "value", eval(compile(ast.Expression(last.value), "<case>", "eval"), space)
    except Exception as error:
        return "raised", type(error).__name__
