"""Games of Werewolf per CPU-second beside kaggle-environments' werewolf and TextArena's SecretMafia.

Every side is a process of its own, pinned to the same processor. In a run it plays one game of seven seats at each of
its tables, resets included; the runs of the sides are interleaved. All tables are stepped in turn, one decision at
each, except where our players sit inside the vector, which lets them play on as long as nobody outside is asked. The
cheap players, ours and the peers', all do the same; the rule-based ones read every line besides. TextArena's game runs
as its ``make`` returns it, and without the wrappers that write what a model reads. All games: two werewolves, a seer,
a doctor, three villagers, one round of talk, ties by lot, nothing revealed. Kaggle's votes are simultaneous like ours,
SecretMafia's are public one after another. Kaggle's side has fewer tables, for its games take hundreds of times as
long; that can only help it, for many tables at once make every side slower.

TextArena comes with ``make peers``. Kaggle's package wants other versions than everything else, so it gets a virtual
environment of its own:

    python3.11 -m venv .venvs/kaggle
    .venvs/kaggle/bin/pip install kaggle-environments==1.33.2
    python benchmarks/studies/speed/werewolf_vs_peers.py

Writes ``benchmarks/results/werewolf_vs_peers.json``. A side whose interpreter is absent is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from sides import Results, Worker

import turngym
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TARGET = HERE.parents[1] / "results" / "werewolf_vs_peers.json"


class Cell(NamedTuple):
    """One process.

    Args:
        side: Its name.
        tables: How many games it plays in a run.
        package: The distribution whose version counts.
        python: Its interpreter.
    """

    side: str
    tables: int
    package: str
    python: Path


def ready(cell: Cell, cpus: list[int]) -> Worker:
    """Return the process of a cell, bound to some processors; to any if there are none."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    worker = Worker(cell.python, "werewolf_side.py", environment)
    worker.ask(do="prepare", side=cell.side, tables=cell.tables, cpus=cpus)
    return worker


def measure(cells: list[Cell], repeats: int, cpus: list[int]) -> dict[str, Results]:
    """Return what every side took, side by side."""
    found: dict[str, Results] = {cell.side: {"tables": cell.tables, "runs": []} for cell in cells}
    with ExitStack() as stack:
        workers = []
        for cell in cells:
            worker = ready(cell, cpus)
            stack.callback(worker.close)
            worker.ask(do="play", seed=0)  # warms up
            workers.append((cell, worker))
        for repeat in range(1, repeats + 1):
            shift = repeat % len(workers)
            for cell, worker in workers[shift:] + workers[:shift]:
                run = worker.ask(do="play", seed=repeat)
                found[cell.side]["runs"].append({**run, "games_per_cpu_second": cell.tables / run["cpu"]})
    return found


def summarise(sides: dict[str, Results]) -> Results:
    """Add medians to every side, and return our ratios over the better peer."""
    for cell in sides.values():
        runs = cell["runs"]
        cell["games_per_cpu_second"] = statistics.median(run["games_per_cpu_second"] for run in runs)
        cell["answers_per_game"] = sum(run["answers"] for run in runs) / (cell["tables"] * len(runs))
        cell["microseconds_per_answer"] = statistics.median(run["cpu"] / run["answers"] for run in runs) * 1e6
    peers = {side: cell for side, cell in sides.items() if not side.startswith("turngym")}
    ratios: Results = {}
    for ours in (side for side in sides if side.startswith("turngym")):
        for peer, cell in peers.items():
            pairs = [
                mine["games_per_cpu_second"] / theirs["games_per_cpu_second"]
                for mine, theirs in zip(sides[ours]["runs"], cell["runs"], strict=True)
            ]
            ratios[f"{ours} / {peer}"] = {
                "games": sides[ours]["games_per_cpu_second"] / cell["games_per_cpu_second"],
                "lowest": min(pairs),
                "highest": max(pairs),
                "answers": cell["microseconds_per_answer"] / sides[ours]["microseconds_per_answer"],
            }
    return ratios


def version_of(cell: Cell) -> str:
    """Return the version of the package behind a side."""
    script = f"from importlib.metadata import version; print(version({cell.package!r}))"
    return subprocess.run([str(cell.python), "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def show(sides: dict[str, Results], ratios: Results, console: Console) -> None:
    """Print both tables."""
    table = Table("side", "tables", "games per CPU-second", "answers per game", "us per answer", box=box.SIMPLE_HEAD)
    for side, cell in sides.items():
        rate, length, cost = cell["games_per_cpu_second"], cell["answers_per_game"], cell["microseconds_per_answer"]
        table.add_row(side, str(cell["tables"]), f"{rate:,.1f}", f"{length:.1f}", f"{cost:,.1f}")
    console.print(table)
    for name, ratio in ratios.items():
        console.print(
            f"{name}: {ratio['games']:.1f}x games ({ratio['lowest']:.1f} to {ratio['highest']:.1f}), "
            f"{ratio['answers']:.1f}x answers"
        )


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Games of Werewolf per CPU-second of turngym, Kaggle and TextArena.")
    parser.add_argument("--tables", type=int, default=1000, help="tables of our sides and of TextArena's")
    parser.add_argument("--kaggle-tables", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpus", nargs="*", type=int, default=[0], help="processors that every process is bound to")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venvs/peers/bin/python", help="Python with TextArena")
    parser.add_argument("--kaggle", type=Path, default=ROOT / ".venvs/kaggle/bin/python", help="Python with Kaggle's")
    parser.add_argument("--target", type=Path, default=TARGET)
    options = parser.parse_args()
    ours, tables = Path(sys.executable), options.tables
    cells = [
        Cell("turngym, rule-based", tables, "turngym", ours),
        Cell("turngym, cheap", tables, "turngym", ours),
        Cell("turngym vector, rule-based inside", tables, "turngym", ours),
        Cell("turngym vector, rule-based outside", tables, "turngym", ours),
        Cell("textarena, cheap", tables, "textarena", options.peers),
        Cell("textarena without wrappers, cheap", tables, "textarena", options.peers),
        Cell("kaggle, cheap", options.kaggle_tables, "kaggle-environments", options.kaggle),
    ]
    for cell in cells:
        if not cell.python.exists():
            print(f"there is no {cell.python}: {cell.side} is left out")
    cells = [cell for cell in cells if cell.python.exists()]
    load = os.getloadavg()
    sides = measure(cells, options.repeats, options.cpus)
    ratios = summarise(sides)
    content = {
        "settings": {"repeats": options.repeats, "processors_bound_to": options.cpus, "seats": 7},
        "versions": {**{cell.side: version_of(cell) for cell in cells}, "turngym": turngym.__version__},
        "machine": {**machine("numpy"), "load_average": load, "load_average_after": os.getloadavg()},
        "sides": sides,
        "ratios": ratios,
    }
    write_json(options.target, content)
    show(sides, ratios, Console(width=120))
    return 0


if __name__ == "__main__":
    sys.exit(main())
