"""Steps per CPU-second of turngym's games beside GEM's and TextArena's: the same games at the closest equal settings.

Needs ``make peers``. Every cell (a side, a game, a number of slots) is a process of its own, pinned to the same
processor. The repeats are interleaved: this process tells one after another to run while all others wait. Actions are
random in the format that each side reads (``peer_games.py``), resets are part of the work, and processor time is what
counts, so that other jobs on the machine disturb little. TextArena gets a fresh object for every episode and has no
vector, so its slots are objects in a loop; GEM's vectors are its loop (sync) and its thread pool (async).

    python benchmarks/studies/speed/env_vs_peers.py
    python benchmarks/studies/speed/env_vs_peers.py --seconds 1 --repeats 3 --games Sokoban Wordle
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gymnasium
from rich import box
from rich.console import Console
from rich.table import Table

import turngym
from turngym.benchmarks.studies.harness import ROOT, arguments, interleaved, write_result
from turngym.benchmarks.studies.speed.sides.peer_games import ROWS, SIDES, Row, row_of
from turngym.benchmarks.studies.speed.sides.worker import Results, Worker
from turngym.envs.textgames.words import LONGEST, SHORTEST, words

MANY = 64
FEW, MOST = 16, 1024
SCRIPT = "peer_side.py"


class Cell(NamedTuple):
    """One process: a side, how it runs, and how many slots it has."""

    side: str
    mode: str
    slots: int

    @property
    def name(self) -> str:
        """Its key in the results."""
        return f"{self.side} {self.mode} {self.slots}"


def cells_of(row: Row) -> list[Cell]:
    """Return the cells of a game: every side alone and with 64 slots, and ours with 16 and 1024."""
    cells = [Cell("turngym", "single", 1), Cell("turngym", "sync", MANY)]
    if row.gem is not None:
        cells += [Cell("gem", "single", 1), Cell("gem", "sync", MANY), Cell("gem", "async", MANY)]
    if row.textarena is not None:
        cells += [Cell("textarena", "single", 1), Cell("textarena", "loop", MANY)]
    return [*cells, Cell("turngym", "sync", FEW), Cell("turngym", "sync", MOST)]


@contextmanager
def word_lists() -> Iterator[tuple[dict[str, list[str]], dict[str, str]]]:
    """Yield our words by length, and an environment in which NLTK finds the same words as its own lists."""
    by_length = {str(length): list(words(length)) for length in range(SHORTEST, LONGEST + 1)}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpora" / "words"
        corpus.mkdir(parents=True)
        text = "\n".join(word for group in by_length.values() for word in group) + "\n"
        for name in ("en", "en-basic"):
            (corpus / name).write_text(text, "utf8")
        yield by_length, {**os.environ, "NLTK_DATA": folder, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def measure(row: Row, options: argparse.Namespace) -> Results:
    """Run every cell of one game, interleaved, and return what was measured."""
    cells = cells_of(row)
    found: Results = {"cells": {cell.name: {} for cell in cells}, "note": row.note}
    with ExitStack() as stack:
        by_length, environment = stack.enter_context(word_lists())
        workers = {}
        for cell in cells:
            python = sys.executable if cell.side == "turngym" else str(options.peers)
            workers[cell] = Worker(python, SCRIPT, environment)
            stack.callback(workers[cell].close)
        for cell, worker in workers.items():
            ready = worker.ask(do="prepare", game=row.name, **cell._asdict(), words=by_length, cpus=options.cpus)
            found["cells"][cell.name].update(ready)
            if ready.get("format_errors"):
                raise AssertionError(f"{cell.name} cannot read {ready['format_errors']:.1%} of the {row.name} actions")
            worker.ask(do="run", seconds=min(1.0, options.seconds))  # warms up
        arms = {cell: partial(_run, worker, options.seconds) for cell, worker in workers.items()}
        for cell, runs in interleaved(arms, options.repeats).items():
            found["cells"][cell.name]["runs"] = runs
        for cell, worker in workers.items():
            if cell.slots == 1:
                found["cells"][cell.name]["apart"] = worker.ask(do="costs", seconds=options.seconds)
    for side in SIDES:
        made = getattr(row, side)
        found[side] = None if made is None else {"id": made.env_id, "options": dict(made.options)}
    return {**found, **summary(found["cells"])}


def _run(worker: Worker, seconds: float, repeat: int) -> Results:
    return worker.ask(do="run", seconds=seconds)


def summary(cells: Mapping[str, Results]) -> Results:
    """Return the ratios of one game: ours over the better peer, alone and with 64 slots, and our loss with 1024."""
    for cell in cells.values():
        rates = [run["steps"] / run["cpu"] for run in cell["runs"]]
        cell["rates"], cell["rate"] = rates, statistics.median(rates)
        episodes = sum(run["episodes"] for run in cell["runs"])
        cell["turns_per_episode"] = sum(run["steps"] for run in cell["runs"]) / episodes if episodes else None
    found: Results = {}
    for name, slots in (("single", 1), ("many", MANY)):
        ours = cells[f"turngym {'single' if slots == 1 else 'sync'} {slots}"]
        peers = [key for key in cells if not key.startswith("turngym") and key.endswith(f" {slots}")]
        best = max(peers, key=lambda key: float(cells[key]["rate"]))
        pairs = [mine / theirs for mine, theirs in zip(ours["rates"], cells[best]["rates"], strict=True)]
        found[name] = {
            "ratio": ours["rate"] / cells[best]["rate"],
            "lowest": min(pairs),
            "highest": max(pairs),
            "better_peer": best,
        }
    few, most = (cells[f"turngym sync {slots}"]["rate"] for slots in (FEW, MOST))
    found["loss_16_to_1024"] = 1 - most / few
    return found


def overall(games: Mapping[str, Results]) -> Results:
    """Return the geometric mean and the worst game of both ratios, and the largest loss."""
    found: Results = {}
    for name in ("single", "many"):
        ratios = {game: float(result[name]["ratio"]) for game, result in games.items()}
        worst = min(ratios, key=ratios.__getitem__)
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
        found[name] = {"geometric_mean": mean, "worst_game": worst, "worst_ratio": ratios[worst]}
    losses = {game: float(result["loss_16_to_1024"]) for game, result in games.items()}
    largest = max(losses, key=losses.__getitem__)
    return {**found, "largest_loss": {"game": largest, "loss": losses[largest]}}


def rates_table(games: Mapping[str, Results]) -> Table:
    """Return every rate and ratio as a table."""
    table = Table(box=box.SIMPLE_HEAD, title="Steps per CPU-second, medians; resets included")
    heads = (
        "ours 1",
        "GEM 1",
        "TextArena 1",
        "ratio",
        "ours 64",
        "GEM sync 64",
        "GEM async 64",
        "TextArena 64",
        "ratio",
    )
    for head in ("game", *heads, "ours 16", "ours 1024", "loss"):
        table.add_column(head, justify="left" if head == "game" else "right")
    keys = ["turngym single 1", "gem single 1", "textarena single 1", "single", "turngym sync 64"]
    keys += ["gem sync 64", "gem async 64", "textarena loop 64", "many", "turngym sync 16", "turngym sync 1024"]
    for game, result in games.items():
        shown = []
        for key in keys:
            if key in result:
                shown.append(f"{result[key]['ratio']:.1f}x")
            else:
                cell = result["cells"].get(key)
                shown.append(f"{cell['rate']:,.0f}" if cell else "-")
        table.add_row(game, *shown, f"{result['loss_16_to_1024']:.0%}")
    return table


def costs_table(games: Mapping[str, Results]) -> Table:
    """Return what a reset and a step cost apart, and how long the episodes of random actions are."""
    table = Table(box=box.SIMPLE_HEAD, title="One environment: microseconds of a reset / of a step (turns per episode)")
    for head in ("game", "ours", "GEM", "TextArena"):
        table.add_column(head, justify="left" if head == "game" else "right")
    for game, result in games.items():
        shown = []
        for side in SIDES:
            cell = result["cells"].get(f"{side} single 1")
            if cell is None:
                shown.append("-")
                continue
            apart, turns = cell["apart"], cell["turns_per_episode"]
            length = "" if turns is None else f" ({turns:.1f})"
            shown.append(f"{apart['reset_us']:,.1f} / {apart['step_us']:,.2f}{length}")
        table.add_row(game, *shown)
    return table


def chosen(names: Sequence[str]) -> list[Row]:
    """Return the rows to measure: the named ones, or all whose game is registered."""
    rows = [row_of(name) for name in names] or list(ROWS)
    absent = [row.name for row in rows if row.turngym.env_id not in gymnasium.registry]
    if absent:
        print(f"not registered here, left out: {', '.join(absent)}")
    return [row for row in rows if row.name not in absent]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = arguments(__doc__, "env_vs_peers.json", repeats=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one run of one cell")
    parser.add_argument("--games", nargs="*", default=[], help="names of games; all if none")
    parser.add_argument("--cpus", nargs="*", type=int, default=None, help="processors that every process is bound to")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venvs/peers/bin/python", help="Python with the peers")
    parser.add_argument("--resume", action="store_true", help="keep the games that --out holds already")
    options = parser.parse_args(argv)
    if options.cpus is None and hasattr(os, "sched_getaffinity"):
        options.cpus = [max(os.sched_getaffinity(0))]
    if not options.peers.exists():
        parser.error(f"there is no {options.peers}: run `make peers` first")
    return options


def versions(python: Path) -> dict[str, str]:
    """Return the versions of what is compared."""
    script = "from importlib.metadata import version as v; print(v('gem-llm'), v('textarena'))"
    done = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=True)
    gem, textarena = done.stdout.split()
    return {"turngym": turngym.__version__, "gem-llm": gem, "textarena": textarena, "gymnasium": gymnasium.__version__}


def measured(target: Path, content: Results) -> Results:
    """Return the games that an earlier measurement with the same settings and versions left in a file."""
    if not target.exists():
        return {}
    earlier: Results = json.loads(target.read_text("utf8"))
    for key in ("settings", "versions"):
        if earlier[key] != content[key]:
            raise SystemExit(f"{target} was measured with other {key}: {earlier[key]}. Pass another --out.")
    games: Results = earlier["games"]
    return games


def main() -> int:
    """Measure, print, and write ``benchmarks/results/env_vs_peers.json``."""
    options, console = parse(), Console(width=170)
    content: Results = {
        "settings": {"seconds": options.seconds, "repeats": options.repeats, "processors_bound_to": options.cpus},
        "words": "the words of wonderwords on every side; NLTK's own lists are not used, downloads are off, and a stub "
        "for its tagger calls every word a noun",
        "versions": versions(options.peers),
        "load_average": os.getloadavg(),
        "games": {},
    }
    if options.resume:
        content["games"] = measured(options.out, content)
    for row in chosen(options.games):
        if row.name not in content["games"]:
            content["games"][row.name] = measure(row, options)
            content["overall"] = overall(content["games"])
            content["load_average_after"] = os.getloadavg()
            write_result(options.out, content, "gymnasium", "numpy")
        single, many = content["games"][row.name]["single"], content["games"][row.name]["many"]
        console.print(
            f"{row.name:15} single {single['ratio']:6.1f}x of {single['better_peer']}, 64 slots "
            f"{many['ratio']:6.1f}x of {many['better_peer']}"
        )
    content["overall"] = overall(content["games"])
    console.print(rates_table(content["games"]), costs_table(content["games"]))
    for name, slots in (("single", 1), ("many", MANY)):
        mean = content["overall"][name]
        console.print(
            f"{slots} slots: geometric mean {mean['geometric_mean']:.2f}x, worst {mean['worst_game']} "
            f"{mean['worst_ratio']:.2f}x"
        )
    largest = content["overall"]["largest_loss"]
    console.print(f"largest loss from {FEW} to {MOST} slots: {largest['loss']:.0%} in {largest['game']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
