"""Building the batch of 145,000 sampled tokens here and in an earlier checkout: processor seconds of each stage.

    python benchmarks/studies/speed/batch_building.py PATH_OF_EARLIER_CHECKOUT

Rows are made from turns, equal ones found, micro-batches cut, and the inputs of the network laid out. The sides take
turns, each run in a process of its own with one thread; ``benchmarks/results/batch_building.json`` has the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

ROOT = Path(__file__).resolve().parents[3]
SIDE = Path(__file__).with_name("batch_building_side.py")
TARGET = ROOT / "benchmarks" / "results" / "batch_building.json"


def seconds(checkout: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of each stage in one checkout, for prompts without a history and for conversations."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(SIDE)], check=True, capture_output=True, text=True, cwd=checkout, env=environment
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="an earlier checkout")
    parser.add_argument("after", type=Path, nargs="?", default=ROOT, help="the checkout to compare with it")
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    sides = {"before": given.before.resolve(), "after": given.after.resolve()}
    runs: dict[str, list[dict[str, dict[str, float]]]] = {side: [] for side in sides}
    for repeat in range(given.repeats):
        for side in list(sides)[:: -1 if repeat % 2 else 1]:
            runs[side].append(seconds(sides[side]))
    content: dict[str, Any] = {"sampled_tokens": 144_640, "repeats": given.repeats, "machine": machine("torch")}
    for prompts, stages in runs["before"][0].items():
        medians = {
            side: {stage: round(statistics.median(run[prompts][stage] for run in of_side), 4) for stage in stages}
            for side, of_side in runs.items()
        }
        ratio = round(medians["before"]["total"] / medians["after"]["total"], 1)
        content[prompts] = {**medians, "times_faster": ratio}
        print(f"{prompts:13} {medians['before']['total']:.3f} s -> {medians['after']['total']:.3f} s ({ratio} times)")
    write_json(TARGET, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
