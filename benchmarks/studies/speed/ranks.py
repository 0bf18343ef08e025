"""Training with one rank and with two on the same machine: seconds an iteration, and how many of them are messages.

    python benchmarks/studies/speed/ranks.py [--model 30M] [--turns 5] [--iterations 4] [--repeats 2]

Each run is ``turngym train`` with GRPO on the environment and the random model of ``training_vs_trl.py``: 2 groups of 8
episodes, one update an iteration, float32, one thread a rank. Two ranks play one group each and share out the
sequences of the update. The first iteration of a run is not counted. ``communication`` is the time of the sums of
gradients and columns alone, measured between two barriers; ``waiting`` is that of everything else between ranks, mostly
for the slower one. Both are shares of the first rank's wall time. Figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training_vs_trl_task import READ, SAMPLED, write_model

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "ranks.json"
SIZES = (1, 2)
GROUPS, GROUP_SIZE = 2, 8
PHASES = ("iteration", "update", "processor", "communication", "waiting")


def run(size: int, told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Train with a number of ranks, and return what each of them measured."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "told.json", {**told, "groups": GROUPS, "group_size": GROUP_SIZE})
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size)]
        command += ["--standalone", str(Path(__file__).with_name("ranks_side.py")), folder]
        subprocess.run(command, env={**os.environ, **threads}, check=True, stdout=subprocess.DEVNULL)
        return [json.loads((Path(folder) / f"rank-{rank}.json").read_text("utf8")) for rank in range(size)]


def summary(runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the medians over the iterations after the first of every run, of the first rank."""
    firsts = [run[0] for run in runs]
    found: dict[str, Any] = {
        f"{phase}_seconds": round(statistics.median(value for first in firsts for value in first[phase][1:]), 3)
        for phase in PHASES
    }
    for phase in ("communication", "waiting"):
        found[f"{phase}_share"] = round(found[f"{phase}_seconds"] / found["iteration_seconds"], 3)
    return found


def main() -> None:
    """Run both numbers of ranks in turn, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["5M", "30M"], default="30M")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    runs: dict[int, list[list[dict[str, Any]]]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        words = write_model(args.model, Path(folder) / "model", Path(folder))
        told = {"model": f"{folder}/model", "words": words, "turns": args.turns, "iterations": args.iterations}
        for repeat in range(args.repeats):
            for size in SIZES if repeat % 2 == 0 else reversed(SIZES):
                runs[size].append(run(size, told))
                print(size, json.dumps(summary(runs[size])), flush=True)
    table = {str(size): summary(found) for size, found in runs.items()}
    seen = {json.dumps(each["seen"][1:]) for found in runs.values() for of_ranks in found for each in of_ranks}
    content = {
        "model": args.model,
        "turns": args.turns,
        "tokens_a_turn": {"read": READ, "sampled": SAMPLED},
        "episodes": {"groups": GROUPS, "group_size": GROUP_SIZE},
        "same_work": len(seen) == 1,
        "ranks": table,
        "times_as_fast": round(table["1"]["iteration_seconds"] / table["2"]["iteration_seconds"], 2),
        "load": os.getloadavg(),
        "machine": machine("torch", "transformers"),
        "runs": {str(size): found for size, found in runs.items()},
    }
    write_json(TARGET, content)


if __name__ == "__main__":
    main()
