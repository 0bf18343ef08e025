"""Measure what extras add to a plain installation, among the packages that are installed here.

``python benchmarks/studies/checks/install_sizes.py`` prints megabytes on disk, without compiled modules: of the plain
package's dependencies, and for each extra of what it adds to ``train``, or to the plain package where it needs no
``train``. An extra with a package that is not installed here is left out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from turngym.benchmarks.studies.harness import arguments

ROOT = Path(__file__).parents[3]


def main() -> None:
    """Print the sizes as JSON."""
    arguments(__doc__).parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    extras: Mapping[str, Sequence[str]] = project["optional-dependencies"]
    plain = sizes(project["dependencies"], extras)
    below = {**plain, **sizes(extras["train"], extras)}
    found: dict[str, Any] = {"plain": sum(plain.values()), "train": sum(below.values()) - sum(plain.values())}
    for extra, lines in extras.items():
        try:
            added = {name: size for name, size in sizes(lines, extras).items() if name not in below}
        except PackageNotFoundError:
            continue
        if extra != "train":
            found[extra] = sum(added.values())
    print(json.dumps({name: round(size / 1e6, 1) for name, size in found.items()}, indent=2))


def sizes(lines: Sequence[str], extras: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the size of each package that requirements bring, those of the packages themselves included.

    Raises:
        PackageNotFoundError: One of them is not installed here.
    """
    found: dict[str, int] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(line) for line in lines]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (key := (name, frozenset(requirement.extras))) in seen:
            continue
        seen.add(key)
        if name == "turngym":
            waiting += [Requirement(line) for extra in requirement.extras for line in extras[extra]]
            continue
        package = distribution(name)
        files = [Path(str(package.locate_file(file))) for file in package.files or [] if file.suffix != ".pyc"]
        found[name] = sum(file.stat().st_size for file in files if file.is_file())
        for inner in map(Requirement, package.requires or []):
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in ("", *requirement.extras)):
                waiting.append(inner)
    return found


if __name__ == "__main__":
    main()
