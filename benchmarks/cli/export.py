"""``turngym export``: a submission in the format of another evaluation tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.exports import export
from turngym.terminal.console import Console


@dataclass(frozen=True)
class Arguments:
    """Convert a folder written by `turngym eval ... --out FOLDER` to the format of another tool.

    Args:
        folder: The folder.
        format: inspect (Inspect AI log; OUT ends with .eval or .json) or lm-eval (lm-evaluation-harness results and
            samples; OUT is a folder).
        out: Output path.
    """

    folder: Positional[Path]
    format: str
    out: Annotated[Path, arg(aliases=("-o",))]


def main(argv: Sequence[str]) -> int:
    """Export, and print the files."""
    arguments = parse(Arguments, argv, "export")
    for file in export(arguments.folder, arguments.format, arguments.out):
        Console(highlight=False).print(f"written to {file}", markup=False, soft_wrap=True)
    return 0
