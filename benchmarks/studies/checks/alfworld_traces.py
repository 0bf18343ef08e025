"""Proves on many games that our engine tells what ALFWorld's unmodified engine tells, byte for byte.

    .venvs/alfworld/bin/python benchmarks/studies/checks/alfworld_traces.py FOLDER

``make integration-alfworld`` makes the environment; FOLDER holds the games in the compact layout. Each game is played
by TextWorld's own engine, every third along its walkthrough with idle commands between, the others with random
admissible commands and some nonsense; then the same commands go to ours. Every text, every list of commands and whether
the game is won must be equal. Writes ``benchmarks/results/alfworld_traces.json``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

from turngym.benchmarks.machine import machine
from turngym.envs.household.alfworld_games import open_games
from turngym.storage.files import write_json

ROOT = Path(__file__).parents[3]
TARGET = ROOT / "benchmarks" / "results" / "alfworld_traces.json"
FOLDS = ("valid_unseen", "valid_seen")


def compare(data: Path, steps: int, job: tuple[int, str, str]) -> dict[str, Any]:
    """Play one game in both engines and return how far they agree."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from alfworld_engine import ours, trace

    warnings.simplefilter("ignore", ResourceWarning)
    number, fold, name = job
    domain, grammar = ((data / file).read_text() for file in ("alfred.pddl", "alfred.twl2"))
    raw = open_games(data, fold).raw(name)
    with tempfile.TemporaryDirectory() as folder:
        theirs = trace(Path(folder), raw, domain, grammar, number, steps, number % 3 == 0)
    same = ours(theirs, raw, grammar)
    first = next((turn for turn, pair in enumerate(zip(theirs, same, strict=True)) if pair[0] != pair[1]), None)
    row = {"fold": fold, "game": name, "states": len(theirs), "won": theirs[-1].is_won, "differs_at": first}
    return row if first is None else {**row, "theirs": list(theirs[first]), "ours": list(same[first])}


def result_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the file says about these games."""
    return {
        "machine": machine("textworld", "alfworld"),
        "games": len(rows),
        "states": sum(row["states"] for row in rows),
        "won": sum(row["won"] for row in rows),
        "differing": [row for row in rows if row["differs_at"] is not None],
        "rows": rows,
    }


def main() -> int:
    """Compare, print and write; 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the games")
    parser.add_argument("--games", type=int, default=120, help="games, half of them from each fold")
    parser.add_argument("--steps", type=int, default=30, help="commands in each")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    jobs: list[tuple[str, str]] = []
    rows: list[dict[str, Any]] = []
    for fold in FOLDS:
        names, count = list(open_games(args.data, fold).kinds), args.games // len(FOLDS)
        jobs += [(fold, names[place * len(names) // count]) for place in range(count)]
    work = [(number, *job) for number, job in enumerate(jobs)]
    with ProcessPoolExecutor(args.jobs) as pool:
        played = pool.map(partial(compare, args.data, args.steps), work)
        for row in track(played, "comparing", total=len(work)):
            rows.append(row)
            write_json(TARGET, result_of(rows))  # what was found so far is there after a kill
    result = result_of(rows)
    differing = result["differing"]
    print(f"{len(rows)} games, {result['states']} states, {len(differing)} games differ: {differing[:3]}")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
