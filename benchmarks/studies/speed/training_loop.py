"""The training loop on Sokoban here and in an earlier checkout, side by side: seconds of each phase.

    python benchmarks/studies/speed/training_loop.py PATH_OF_EARLIER_CHECKOUT

Both sides do the same work: they start from one warmed-up model, with the seed and the preset quickstart's settings but
without its control and evaluations, and an invalid action costs nothing, since versions differ in where they take that
penalty off. Whether the weights and metrics came out equal is written down. The sides take turns, each run in a process
of its own with one thread. ``benchmarks/results/training_loop.json`` has the wall seconds from the runs' own metrics
and the processor seconds beside them, which other work on the machine changes less; medians over the repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

ROOT = Path(__file__).resolve().parents[3]
SIDE = Path(__file__).with_name("training_loop_side.py")
TARGET = ROOT / "benchmarks" / "results" / "training_loop.json"
COMMON = (
    *("--env", "turngym/Sokoban-v0"),
    *("--no-control", "--max-seconds", "0", "--device", "cpu", "--threads", "1"),
    *("--evaluation.episodes", "0", "--evaluation.every", "0", "--gigpo.invalid-penalty", "0"),
)
PHASES = {"rollout": "time/rollout_seconds", "update": "time/update_seconds"}


def train(checkout: Path, folder: Path, model: Path | None, iterations: int) -> dict[str, Any]:
    """Train in one checkout; returns metrics, the weights' bytes, and wall and processor seconds of each phase."""
    folder.mkdir()
    options = [*COMMON, "--run-dir", str(folder / "run"), "--iterations", str(iterations)]
    subprocess.run(
        [
            sys.executable,
            str(SIDE),
            str(folder / "seconds.json"),
            *options,
            *(["--model", str(model)] if model else []),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    )
    records = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text("utf8").splitlines()]
    processor = json.loads((folder / "seconds.json").read_text("utf8"))
    update, whole = sum(processor["update"]), sum(processor["iteration"])
    return {
        "records": records,
        "weights": (folder / "run" / "model" / "model.safetensors").read_bytes(),
        "wall": {phase: sum(record[name] for record in records) for phase, name in PHASES.items()},
        "processor": {"rollout": whole - update, "update": update},
    }


def medians(runs: list[dict[str, Any]], clock: str) -> dict[str, float]:
    """Return the median seconds of each phase, and of the loop."""
    found = {phase: [run[clock][phase] for run in runs] for phase in PHASES}
    found["loop"] = [sum(run[clock].values()) for run in runs]
    return {phase: round(statistics.median(values), 3) for phase, values in found.items()}


def is_same_work(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs ended with the same weights, and with the same metrics where both have them, times apart."""
    pairs = zip(one["records"], other["records"], strict=True)
    same = all(a[name] == b[name] for a, b in pairs for name in a.keys() & b.keys() if not name.startswith("time/"))
    return same and one["weights"] == other["weights"]


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="an earlier checkout")
    parser.add_argument("after", type=Path, nargs="?", default=ROOT, help="the checkout to compare with it")
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    sides = {"before": given.before.resolve(), "after": given.after.resolve()}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(sides["before"], folder / "start", None, 1)
        for repeat in range(given.repeats):
            for side in list(sides)[:: -1 if repeat % 2 else 1]:
                model = folder / "start" / "run" / "warmup"
                runs[side].append(train(sides[side], folder / f"{side}-{repeat}", model, given.iterations))
    content = report(runs, {"iterations": given.iterations, "repeats": given.repeats, "load_average_before": load})
    write_json(TARGET, content)
    return 0


def report(runs: dict[str, list[dict[str, Any]]], settings: dict[str, Any]) -> dict[str, Any]:
    """Print the table and return what is written."""
    first = runs["before"][0]
    same = all(is_same_work(first, run) for side in runs.values() for run in side)
    content: dict[str, Any] = {
        **settings,
        "same_weights_and_metrics": same,
        "machine": machine("torch", "transformers"),
    }
    for clock in ("wall", "processor"):
        found = {side: medians(of_side, clock) for side, of_side in runs.items()}
        ratio = {phase: round(found["after"][phase] / found["before"][phase], 3) for phase in found["before"]}
        pairs = [
            sum(b[clock].values()) / sum(a[clock].values()) for a, b in zip(runs["before"], runs["after"], strict=True)
        ]
        content[f"{clock}_seconds"] = {**found, "ratio": ratio, "ratio_of_each_repeat": [round(r, 3) for r in pairs]}
        for phase in ratio:
            before, after = found["before"][phase], found["after"][phase]
            print(f"{clock:9} {phase:8} {before:7.2f} s -> {after:7.2f} s  ratio {ratio[phase]:.2f}")
    print(f"same weights and metrics: {same}")
    return content


if __name__ == "__main__":
    sys.exit(main())
