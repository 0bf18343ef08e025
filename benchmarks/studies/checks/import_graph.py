"""The import graph by package: modules at the top of each, arrows between its rooms, circles, arrows upward.

    python benchmarks/studies/checks/import_graph.py                    # this checkout
    python benchmarks/studies/checks/import_graph.py BEFORE .           # two checkouts side by side
    python benchmarks/studies/checks/import_graph.py --json --modules   # with every arrow, and circles between modules

A room is a sub-package. An arrow says that something in one room imports something in another room of the same package;
imports inside of functions count, those under ``TYPE_CHECKING`` do not. A circle is a set of rooms and modules of one
package that reach each other, at least one of them a room. An arrow upward leads from a part to one above it in
``turngym <- envs <- wrappers <- agents <- trainers <- benchmarks``.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PARTS = ("envs", "wrappers", "agents", "trainers", "benchmarks")
"""The folders of the repository that are sub-packages, the lowest first; the rest of turngym lies below them."""
BASE = ("turngym",)
FRONT_DOORS = ("turngym", "turngym.__main__")
"""What exports names of all parts, and runs their commands."""
Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Package:
    """What the graph says of one package.

    Args:
        modules: Modules at its top, ``__init__`` left out.
        rooms: Its sub-packages.
        arrows: Room or module -> what it imports, among those directly below the package.
        circles: Rooms that reach each other.
    """

    modules: tuple[str, ...]
    rooms: tuple[str, ...]
    arrows: Mapping[str, tuple[str, ...]]
    circles: tuple[tuple[str, ...], ...]

    @property
    def between_rooms(self) -> int:
        """How many arrows lead from one sub-package to another."""
        return sum(other in self.rooms for room in self.rooms for other in self.arrows.get(room, ()))

    def as_json(self, *, is_whole: bool) -> dict[str, Any]:
        """Return the numbers, and the arrows with ``is_whole``."""
        found: dict[str, Any] = {
            "modules": len(self.modules),
            "rooms": list(self.rooms),
            "arrows": self.between_rooms,
            "circles": [list(circle) for circle in self.circles],
        }
        return found | ({"imports": {room: list(found) for room, found in self.arrows.items()}} if is_whole else {})


@dataclass
class Tree:
    """The modules of a checkout and what they import.

    Args:
        root: Its root folder.
    """

    root: Path
    files: dict[str, Path] = field(default_factory=dict)
    imports: Graph = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = {_dotted(path.relative_to(self.root)): path for path in _sources(self.root)}
        for name, path in self.files.items():
            found = _imported(ast.parse(path.read_text("utf8")))
            self.imports[name] = {module for each in found if (module := self._module(each)) and module != name}

    def _module(self, name: str) -> str:
        """Return the module that an imported dotted name is, or is in; empty for other packages."""
        while name and name not in self.files:
            name = name.rpartition(".")[0]
        return name

    def packages(self) -> dict[str, Package]:
        """Return every package with what is directly below it."""
        names = sorted(name for name, path in self.files.items() if path.name == "__init__.py")
        return {name: self._package(name) for name in names}

    def _package(self, package: str) -> Package:
        """Return what is directly below a package; what ``__init__`` modules export is no arrow."""
        prefix = package + "."
        below = [name for name in self.files if name.startswith(prefix)]
        units = {name: prefix + name[len(prefix) :].partition(".")[0] for name in below}
        arrows: Graph = defaultdict(set)
        for name, unit in units.items():
            arrows[unit] |= {units[other] for other in self.imports[name] if other in units} - {unit}
        rooms = {unit for unit in units.values() if self.files.get(unit, Path()).name == "__init__.py"}
        circles = [tuple(sorted(circle)) for circle in circles_of(arrows) if rooms & circle]
        return Package(
            tuple(sorted(unit for unit in units.values() if unit not in rooms)),
            tuple(sorted(rooms)),
            {unit: tuple(sorted(others)) for unit, others in sorted(arrows.items())},
            tuple(sorted(circles)),
        )

    def upward(self) -> list[tuple[str, str]]:
        """Return the imports that lead from a part to one above it."""
        return [
            (name, other)
            for name, others in sorted(self.imports.items())
            for other in sorted(others)
            if _floor(other) > _floor(name) and name not in FRONT_DOORS
        ]

    def module_circles(self) -> list[tuple[str, ...]]:
        """Return the sets of modules that import each other."""
        return sorted(tuple(sorted(circle)) for circle in circles_of(self.imports))


def _sources(root: Path) -> Iterator[Path]:
    """Return the modules that belong to the package; studies are scripts that nothing imports."""
    for part in (*BASE, *PARTS):
        for path in sorted((root / part).rglob("*.py")):
            inside = path.relative_to(root)
            is_package = all((root / parent / "__init__.py").exists() for parent in inside.parents if parent != Path())
            is_link = any((root / parent).is_symlink() for parent in inside.parents)
            if is_package and not is_link:
                yield path


def _dotted(path: Path) -> str:
    names = [*path.with_suffix("").parts]
    names = names[:-1] if names[-1] == "__init__" else names
    return ".".join(names if names[0] == "turngym" else ["turngym", *names])


def _floor(module: str) -> int:
    part = module.split(".")[1] if "." in module else ""
    return PARTS.index(part) + 1 if part in PARTS else 0


def _imported(tree: ast.Module) -> Iterator[str]:
    """Return the dotted names that a module imports when it runs, those in its functions included."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def circles_of(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the sets of two or more nodes that reach each other (Tarjan's algorithm).

    >>> [sorted(circle) for circle in circles_of({"a": "b", "b": "ca", "c": ""})]
    [['a', 'b']]
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            circle = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(circle)

    for node in graph:
        if node not in numbers:
            visit(node)
    return found


def report(tree: Tree, *, is_whole: bool = False) -> dict[str, Any]:
    """Return everything about a checkout as JSON can hold it."""
    found: dict[str, Any] = {
        "modules": len(tree.files),
        "packages": {name: package.as_json(is_whole=is_whole) for name, package in tree.packages().items()},
        "upward": [f"{name} -> {other}" for name, other in tree.upward()],
    }
    return found | ({"module_circles": [list(circle) for circle in tree.module_circles()]} if is_whole else {})


def table(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Return the lines of a table: a package a line, the numbers of each checkout beside each other."""
    names = sorted({name for each in reports.values() for name in each["packages"]})
    width = max(map(len, names))
    yield " " * width + "".join(f"  {place[-32:]:>32}" for place in reports)
    yield f"{'package':<{width}}" + f"  {'modules':>8}{'rooms':>7}{'arrows':>8}{'circles':>9}" * len(reports)
    for name in names:
        cells = [each["packages"].get(name) for each in reports.values()]
        yield f"{name:<{width}}" + "".join(_cells(cell) for cell in cells)
    for place, each in reports.items():
        circles = [circle for package in each["packages"].values() for circle in package["circles"]]
        most = max(each["packages"].items(), key=lambda pair: pair[1]["modules"])
        yield ""
        yield (
            f"{place}: {each['modules']} modules in {len(each['packages'])} packages, at most {most[1]['modules']} at "
            f"the top of one ({most[0]}); {len(circles)} circles, {len(each['upward'])} arrows upward"
        )
        yield from (f"  circle: {', '.join(circle)}" for circle in circles)
        yield from (f"  upward: {arrow}" for arrow in each["upward"])


def _cells(package: Mapping[str, Any] | None) -> str:
    if package is None:
        return " " * 34
    return f"  {package['modules']:>8}{len(package['rooms']):>7}{package['arrows']:>8}{len(package['circles']):>9}"


def main() -> None:
    """Print the graph of one checkout, or of several side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, default=[Path(__file__).parents[3]])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--modules", action="store_true", help="with every arrow, and the circles between modules")
    arguments = parser.parse_args()
    reports = {str(path): report(Tree(path.resolve()), is_whole=arguments.modules) for path in arguments.trees}
    print(json.dumps(reports, indent=1) if arguments.json else "\n".join(table(reports)))


if __name__ == "__main__":
    main()
