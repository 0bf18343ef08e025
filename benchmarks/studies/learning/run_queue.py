"""A resumable queue of training runs: finished ones are kept, broken-off ones go on, at most two at a time."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.algorithms import parts
from turngym.trainers.loop.checkpoint import all_checkpoints
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.run import headline
from turngym.trainers.settings.config import TrainConfig

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "runs" / "benchmarks"
RESULTS = ROOT / "benchmarks" / "results"
AT_ONCE = min(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
"""How many runs go on side by side: two, or one where this process may use one core only."""


FIRST_DEFAULTS: Mapping[str, Mapping[str, Any]] = json.loads(
    (Path(__file__).parent / "defaults-0.1.0.json").read_text("utf8")
)
"""Part of an algorithm -> its defaults in the version that made the results here."""


def options_of_0_1_0(algorithm: str) -> dict[str, dict[str, Any]]:
    """Return part -> the settings whose defaults have changed since the results here were made, as they were then.

    >>> options_of_0_1_0("dapo+epo")
    {'dapo': {'entropy_coef': 0.01, 'invalid_penalty': 0.1}}

    Args:
        algorithm: Name of the algorithm.
    """
    found: dict[str, dict[str, Any]] = {}
    for part, kind in parts(algorithm):
        today = json.loads(json.dumps(dataclasses.asdict(kind())))
        before = FIRST_DEFAULTS.get(part, {})
        changed = {key: value for key, value in before.items() if key in today and value != today[key]}
        if changed:
            found[part] = changed
    return found


def with_settings_of_0_1_0(options: Sequence[str]) -> list[str]:
    """Return options of ``turngym train`` with the settings that version 0.1.0 had as defaults written out.

    The results here were made with that version, whose methods had an entropy bonus, a dual clip and a penalty that
    most papers do not have. Settings among the options stay as they are.

    >>> with_settings_of_0_1_0(["--algorithm", "dapo", "--dapo.entropy-coef", "0"])
    ['--algorithm', 'dapo', '--dapo.entropy-coef', '0', '--dapo.invalid-penalty', '0.1']
    """
    found = list(options)
    algorithm = found[found.index("--algorithm") + 1] if "--algorithm" in found else TrainConfig().algorithm
    for part, settings in options_of_0_1_0(algorithm).items():
        for name, value in settings.items():
            option = f"--{part}.{name}".replace("_", "-")
            if option not in found:
                found += [option, str(value)]
    return found


def is_finished(folder: Path) -> bool:
    """Return whether a run has been evaluated."""
    return (folder / "done").exists()


def run_one(name: str, arguments: Sequence[str]) -> Path:
    """Run ``turngym train`` to its end; returns the run folder."""
    folder = RUNS / name
    if is_finished(folder):
        return folder
    command = [sys.executable, "-m", "turngym", "train", *arguments, "--run-dir", str(folder)]
    if (folder / "warmup" / "done").exists() or all_checkpoints(folder / "checkpoints"):
        command.append("--resume")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with (folder.parent / f"{name}.log").open("ab") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT, check=True)
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    return folder


def run_all(arms: Mapping[str, Sequence[str]], at_once: int = AT_ONCE) -> dict[str, Path]:
    """Run every arm, ``at_once`` of them side by side."""
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(arms, pool.map(run_one, arms, arms.values()), strict=True))


def summary(folder: Path) -> dict[str, Any]:
    """Return the figures of one run that a table shows."""
    run = RunFolder(folder)
    last = run.metrics()[-1]
    return {
        "headline": headline(run),
        "evaluations": run.evaluations(),
        "iterations": last["iteration"] + 1,
        "environment_turns": last["turns_total"],
        "training_seconds": last["time/seconds_total"],
        "largest_logprob_gap": max(record["train/logprob_gap"] for record in run.metrics()),
    }


def mean_and_range(values: Sequence[float]) -> str:
    """Return shares as percent: mean, smallest and largest."""
    return f"{100 * statistics.fmean(values):5.1f} ({100 * min(values):.1f} to {100 * max(values):.1f})"


def write_results(name: str, content: Mapping[str, Any]) -> Path:
    """Write a result file with the machine described; ``script-part`` holds one part of a script's results."""
    target = RESULTS / f"{name}.json"
    script, _, part = name.partition("-")
    command = f"python benchmarks/studies/learning/{script}.py {part}".strip()
    write_json(target, {"machine": machine("torch"), "command": command, **content})
    return target
