"""``turngym compare``: two evaluations on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.evaluation.comparison import Comparison, Difference, compare, verdict
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.text import printable

SCHEMA = 1
"""Version of what ``--json`` prints."""
_SHOWN = 80


@dataclass(frozen=True)
class Arguments:
    """Compare two evaluations on the same tasks, task by task.

    Both come from `turngym eval ... --out FOLDER`, or are logs of other suites. Differences are second minus first,
    with 95 % intervals of a paired bootstrap over tasks; the mean gives every environment equal weight.

    Args:
        first: Reference folder or log.
        second: Folder or log to compare with the reference.
        json: Print all metrics as JSON.
    """

    first: Positional[Path]
    second: Positional[Path]
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Compare and print."""
    arguments = parse(Arguments, argv, "compare")
    found = compare(arguments.first, arguments.second)
    if arguments.json:
        print_json({"version": SCHEMA, **found.as_json()})
        return 0
    console = Console(highlight=False)
    console.print(_table(found))
    console.print(printable(verdict(found)), markup=False, soft_wrap=True)
    for name, (first, second) in found.prompts.items():
        line = f"The prompts differ in {name}: {first[:_SHOWN]!r} and {second[:_SHOWN]!r}."
        console.print(printable(line), markup=False, soft_wrap=True)
    return 0


def _table(found: Comparison) -> Table:
    scale, unit = (100, " %") if found.metric == "success" else (1, "")
    title = escape(printable(f"{found.suite}: {found.metric}{unit}"))
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    names = found.names if found.names[0] != found.names[1] else ("the first", "the second")
    table.add_column("environment", overflow="fold", min_width=13)
    for name in names:
        table.add_column(escape(printable(name)), justify="right", overflow="fold", max_width=9)
    for name in ("change", "95 % interval", "tasks +/-"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, each in found.environments.items():
        table.add_row(escape(printable(label.removeprefix("turngym/"))), *_cells(each, found.metric, scale))
    if len(found.environments) > 1:
        table.add_section()
        table.add_row("mean with equal weights", *_cells(found.overall, found.metric, scale))
    return table


def _cells(each: Difference, metric: str, scale: float) -> list[str]:
    digits = 1 if scale == 100 else 3
    estimate = each.metrics[metric]
    low, high = (f"{scale * end:+.{digits}f}" for end in (estimate.low, estimate.high))
    return [
        f"{scale * each.first[metric]:.{digits}f}",
        f"{scale * each.second[metric]:.{digits}f}",
        f"{scale * estimate.value:+.{digits}f}",
        estimate.no_interval or f"{low} to {high}",
        f"{each.gained}/{each.lost}",
    ]
