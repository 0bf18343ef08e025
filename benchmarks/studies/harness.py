"""Harness of the studies: arguments, interleaved repeats, medians, and results with the machine that made them."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

ArmT = TypeVar("ArmT")
ResultT = TypeVar("ResultT")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def arguments(doc: str | None, out: str = "", repeats: int = 0) -> argparse.ArgumentParser:
    """Return the parser of a script.

    Args:
        doc: Docstring of the script, which is its help.
        out: File of the folder of results that ``--out`` names by default; without it the option is missing.
        repeats: Default of ``--repeats``; 0 leaves the option out.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if out:
        parser.add_argument("--out", type=Path, default=RESULTS / out, help="file of the figures")
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats, help="runs of each arm, interleaved")
    return parser


def interleaved(arms: Mapping[ArmT, Callable[[int], ResultT]], repeats: int) -> dict[ArmT, list[ResultT]]:
    """Return arm -> its results: each arm runs once a repeat, and every repeat starts with another arm.

    >>> interleaved({"a": lambda repeat: repeat, "b": lambda repeat: -repeat}, 3)
    {'a': [0, 1, 2], 'b': [0, -1, -2]}
    """
    order = list(arms)
    found: dict[ArmT, list[ResultT]] = {arm: [] for arm in order}
    for repeat in range(repeats):
        start = repeat % len(order)
        for arm in order[start:] + order[:start]:
            found[arm].append(arms[arm](repeat))
    return found


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure over some runs.

    >>> medians([{"seconds": 3.0}, {"seconds": 1.0}, {"seconds": 9.0}])
    {'seconds': 3.0}
    """
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def command() -> str:
    """Return the command line of this process, with the script as a path in the repository."""
    script = Path(sys.argv[0]).resolve()
    name = script.relative_to(ROOT).as_posix() if script.is_relative_to(ROOT) else script.name
    return shlex.join(["python", name, *sys.argv[1:]])


def write_result(path: Path, content: Mapping[str, Any], *packages: str) -> None:
    """Write figures with the command and the machine that made them, under a temporary name that is then renamed.

    Args:
        path: File of the result.
        content: The figures.
        packages: Distribution names whose versions matter to the figures.
    """
    write_json(path, {"command": command(), "machine": machine(*packages), **content})
