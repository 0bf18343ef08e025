"""Size of the code base: code lines, small modules, crowded packages, and public names.

Code lines are those of ``*.py`` files without docstrings, comments and blank lines.

    python benchmarks/studies/checks/code_size.py

With ``--calls`` and the words of a command, the files and functions of the project that the command runs through:

    python benchmarks/studies/checks/code_size.py --calls eval turngym/GuessTheNumber-v0 --agent expert --episodes 3
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import subprocess
import sys
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_PRODUCT = ("turngym", "envs", "wrappers", "agents", "trainers", "benchmarks")
SMALL, CROWDED = 60, 16
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> dict[str, str]:
    """Return path -> source of the committed modules in folders of the repository."""
    call = ["git", "ls-files", "--", *(f"{folder}/*.py" for folder in folders)]
    names = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {name: (ROOT / name).read_text("utf8") for name in names if (ROOT / name).is_file()}


def code_lines(source: str) -> int:
    """Return the number of lines with code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _Documented) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def imported(source: str) -> Iterator[str]:
    """Yield the dotted names that a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def dotted(path: str) -> str:
    """Return the name that a file is imported by."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("turngym") else f"turngym.{name}"


def with_one_importer(sources: dict[str, str]) -> list[str]:
    """Return the small modules that exactly one other module imports."""
    importers: Counter[str] = Counter()
    for source in sources.values():
        importers.update(set(imported(source)))
    small = (path for path, source in sources.items() if len(source.splitlines()) < SMALL)
    return [path for path in small if not path.endswith("__init__.py") and importers[dotted(path)] == 1]


def crowded(sources: dict[str, str]) -> dict[str, int]:
    """Return the packages with many modules -> how many they have at their top."""
    counts = Counter(str(Path(path).parent) for path in sources if not path.endswith("__init__.py"))
    return {folder: count for folder, count in sorted(counts.items()) if count > CROWDED}


def unlisted(sources: dict[str, str]) -> int:
    """Return the number of functions, classes and constants without underscore that no ``__all__`` has."""
    total = 0
    for source in sources.values():
        names: set[str] = set()
        listed: set[str] = set()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(each.id for each in targets if isinstance(each, ast.Name))
                if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
                    listed.update(ast.literal_eval(node.value) if isinstance(node.value, ast.List) else ())
        total += len([name for name in names - listed if not name.startswith("_")])
    return total


def sizes() -> dict[str, object]:
    """Return all figures."""
    product, tests = modules(*_PRODUCT), modules("tests")
    studies = {path: source for path, source in product.items() if path.startswith("benchmarks/studies/")}
    library = {path: source for path, source in product.items() if path not in studies}
    return {
        "code_lines": sum(map(code_lines, product.values())),
        "all_lines": sum(len(source.splitlines()) for source in product.values()),
        "modules": len(product),
        "code_lines_of_studies": sum(map(code_lines, studies.values())),
        "code_lines_of_tests": sum(map(code_lines, tests.values())),
        "small_modules_with_one_importer": len(with_one_importer(library)),
        "packages_with_many_modules": crowded(library),
        "public_names_outside_all": unlisted(library),
    }


def calls(words: list[str]) -> dict[str, int]:
    """Run a command and return how many files and functions of the project it calls, and how many it imports."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no module or class body
            seen.add(frame.f_code)

    sys.setprofile(note)
    threading.setprofile(note)
    from turngym.__main__ import main

    main(words)
    sys.setprofile(None)
    threading.setprofile(None)
    places = {code: Path(code.co_filename).resolve() for code in seen if not code.co_name.startswith("<")}
    own = {code: path for code, path in places.items() if path.is_file() and ROOT in path.parents}
    imported = [name for name in sys.modules if name.partition(".")[0] == "turngym"]
    return {"files": len(set(own.values())), "functions": len(own), "modules_imported": len(imported)}


def main() -> None:
    """Print the sizes, or what a command calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", nargs=argparse.REMAINDER, metavar="WORD", help="words of a turngym command to run")
    words = parser.parse_args().calls
    print(json.dumps(sizes() if words is None else calls(words), indent=2))


if __name__ == "__main__":
    main()
