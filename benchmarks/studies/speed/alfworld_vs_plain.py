"""ALFWorld's games in turngym beside the plain stack (alfworld and textworld), at 1 and at 8 slots.

    ALFWORLD_DATA=FOLDER python benchmarks/studies/speed/alfworld_vs_plain.py

Both sides play valid_unseen in ALFWorld's official layout, written from the compact one that ALFWORLD_DATA must name,
each in a fresh process of the same interpreter, one after the other, in turns, at least 5 times. The plain stack is
ALFWorld's own ``AlfredTWEnv``, which gives every slot a process where there are several; turngym's is a vector in one
process. Processor seconds are those of all processes of a side; imports are left out of resets and steps, not of the
opening. A reset goes to another game; steps are random admissible commands. ``make integration-alfworld`` makes the
interpreter. Writes ``benchmarks/results/alfworld.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from rich.progress import track
from sides import Worker

from turngym.benchmarks.machine import machine
from turngym.envs.household.alfworld_games import find_data, open_games
from turngym.storage.files import write_json

ROOT = Path(__file__).parents[3]
PEER = ROOT / ".venvs" / "alfworld" / "bin" / "python"
TARGET = ROOT / "benchmarks" / "results" / "alfworld.json"
FOLD = "valid_unseen"
SLOTS = (1, 8)
WORK = {"turngym": {"resets": 1000, "steps": 20000}, "plain": {"resets": 3, "steps": 40}}
"""Side -> what it does: enough for its clock."""
MORE_IS_BETTER = ("steps_per_cpu_s", "steps_per_s")


def write_fold(folder: Path) -> int:
    """Write the games of the fold as ALFWorld's release lays them out, and return their number."""
    data = find_data("")
    games, domain = open_games(data, FOLD), (data / "alfred.pddl").read_text()
    grammar = (data / "alfred.twl2").read_text()
    for name, kind in games.kinds.items():
        trial, raw = folder / FOLD / name, games.raw(name)
        trial.mkdir(parents=True)
        text = grammar.replace("{goal_text}", raw["goal_text"])
        content = {**raw, "pddl_domain": domain, "grammar": text, "solvable": True}
        (trial / "game.tw-pddl").write_text(json.dumps(content))
        (trial / "traj_data.json").write_text(json.dumps({"task_type": kind}))
    return len(games.kinds)


def play(side: str, folder: Path, slots: int, seed: int, scale: float) -> dict[str, float]:
    """Let one side play in a fresh process, with a cache beside the games; return its figures."""
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    worker = Worker(PEER, "alfworld_side.py", {**os.environ, **cache, "OMP_NUM_THREADS": "1"})
    work = {key: max(int(count * scale), 1) for key, count in WORK[side].items()}
    work["steps"] = max(work["steps"] // slots, 10)
    try:
        figures: dict[str, float] = worker.ask(side=side, folder=str(folder / FOLD), slots=slots, seed=seed, **work)
        return figures
    finally:
        worker.close()


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Return the median of each figure, and all of them."""
    return {
        name: {"median": statistics.median(row[name] for row in rows), "all": [row[name] for row in rows]}
        for name in rows[0]
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="how often each side plays at each number of slots")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual resets and steps, to try it out")
    parser.add_argument("--out", type=Path, default=TARGET, help="file to write")
    args = parser.parse_args()
    jobs = [(repeat, slots, side) for repeat in range(args.repeats) for slots in SLOTS for side in ("turngym", "plain")]
    rows: dict[tuple[str, int], list[dict[str, float]]] = {(side, slots): [] for _, slots, side in jobs}
    with tempfile.TemporaryDirectory() as folder:
        games = write_fold(Path(folder))
        first = play("turngym", Path(folder), 1, 0, 0.01)  # opened for the first time: no cache yet
        for repeat, slots, side in track(jobs, "measuring"):
            rows[side, slots].append(play(side, Path(folder), slots, repeat, args.scale))
    result: dict[str, Any] = {
        "machine": machine("numpy", "gymnasium"),
        "fold": FOLD,
        "games": games,
        "repeats": args.repeats,
        "work": WORK,
        "turngym_first_opening_s": first["open_s"],
        "slots": {},
    }
    for slots in SLOTS:
        sides = {side: summary(rows[side, slots]) for side in WORK}
        ratios = {}
        for name in sides["plain"]:
            ours, theirs = (sides[side][name]["median"] for side in ("turngym", "plain"))
            ratios[name] = ours / theirs if name in MORE_IS_BETTER else theirs / ours
        result["slots"][str(slots)] = {**sides, "times_better": ratios}
        print(f"{slots} slots:", json.dumps({name: round(value, 1) for name, value in ratios.items()}))
    write_json(args.out, result)


if __name__ == "__main__":
    main()
