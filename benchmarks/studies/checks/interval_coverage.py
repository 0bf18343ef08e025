"""How often the 95 % intervals hold the truth, on synthetic episodes whose truth is known.

    python benchmarks/studies/checks/interval_coverage.py [--trials 4000]

Every case draws episodes again and again, makes the interval with the function that evaluations use, and counts how
often the true mean lies inside. Writes ``benchmarks/results/interval_coverage.json``. Beside the cases that must hold
stand one that is known to be hard (few tasks with very skewed returns), and intervals that are not used, to show what
would go wrong. With a fixed chance of success the number of successes is a whole number and the coverage of any
interval jumps with the chance: for Wilson's it is computed exactly over a grid of chances.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.progress import track

from turngym.agents.intervals import Estimate, cluster_bootstrap, paired_difference, share, wilson
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.seeding import stream

FIRST = 100
"""Trials whose hits are also told alone, so that a test can repeat them."""
BOUNDS = 0.93, 0.97
Kind = Literal["holds", "hard", "not used"]
Drawn = tuple[Estimate, float]


@dataclass(frozen=True)
class Case:
    """Synthetic episodes and an interval.

    Args:
        name: What is drawn.
        method: What makes the interval.
        draw: From generator and number of the trial to the estimate and the true mean.
        kind: ``holds``: must lie in :data:`BOUNDS`; ``hard``: used, but known to hold less; ``not used``.
    """

    name: str
    method: str
    draw: Callable[[np.random.Generator, int], Drawn]
    kind: Kind = "holds"


def successes(tasks: int, most: float) -> Case:
    """Return one attempt at each of some tasks; the chance of success is drawn anew for each data set."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        chance = most * generator.random()
        return share((generator.random(tasks) < chance).astype(float).tolist(), range(tasks)), chance

    return Case(f"success, {tasks} tasks, chance drawn from [0, {most}]", "share (Wilson)", draw)


def returns(tasks: int, kind: str) -> Case:
    """Return one attempt at each of some tasks, with returns that are normal or skewed; the true mean is 1."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        values = generator.exponential(size=tasks) if kind == "exponential" else generator.normal(1, size=tasks)
        return cluster_bootstrap(values.tolist(), range(tasks), trial), 1.0

    is_hard = kind == "exponential" and tasks < 100
    return Case(f"{kind} returns, {tasks} tasks", "cluster bootstrap", draw, "hard" if is_hard else "holds")


def attempts(tasks: int, each: int) -> Case:
    """Return several attempts at tasks that differ in difficulty: a task's chance is drawn from Beta(2, 3)."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        chances = np.repeat(generator.beta(2, 3, size=tasks), each)
        values = (generator.random(tasks * each) < chances).astype(float)
        return share(values.tolist(), np.repeat(np.arange(tasks), each).tolist()), 0.4

    return Case(f"success, {tasks} tasks with {each} attempts", "share (cluster bootstrap)", draw)


def _uneven(blocks: int) -> Case:
    """Return blocks of 1 to 5 games that share half of their variance; the true mean is 0."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        sizes = generator.integers(1, 6, size=blocks)
        owner = np.repeat(np.arange(blocks), sizes)
        values = generator.normal(size=blocks)[owner] + generator.normal(size=len(owner))
        return cluster_bootstrap(values.tolist(), owner.tolist(), trial), 0.0

    return Case(f"scores, {blocks} blocks of 1 to 5 games", "cluster bootstrap", draw)


def paired(tasks: int, each: int) -> Case:
    """Return two agents on the same tasks: a task of ease d is solved with chance d by one and d * d by the other."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        ease = generator.random(tasks)
        sides = [generator.binomial(each, chance) / each for chance in (ease, ease * ease)]
        return paired_difference(sides[0].tolist(), sides[1].tolist(), trial), 1 / 2 - 1 / 3

    return Case(f"difference of two agents, {tasks} tasks, attempts at each: {each}", "paired bootstrap", draw)


def _whole_suite(environments: int, tasks: int) -> Case:
    """Return the mean over environments with equal weights, whose chances of success lie between 0.05 and 0.95."""
    chances = np.linspace(0.05, 0.95, environments)

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        found = generator.random((environments, tasks)) < chances[:, None]
        return equal_weight_mean([share(row.tolist(), range(tasks)) for row in found.astype(float)]), 0.5

    return Case(f"suite of {environments} environments, {tasks} tasks each", "equal-weight mean", draw)


def _rare_resampled(tasks: int, chance: float) -> Case:
    """Return what resampling would make of rare successes, where Wilson's interval is used instead."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        found = (generator.random(tasks) < chance).astype(float).tolist()
        return cluster_bootstrap(found, range(tasks), trial), chance

    return Case(f"success, {tasks} tasks, chance {chance}", "cluster bootstrap", draw, "not used")


def _attempts_as_tasks(tasks: int, each: int) -> Case:
    """Return what Wilson's interval would make of attempts at one task, as if they were different tasks."""

    def draw(generator: np.random.Generator, trial: int) -> Drawn:
        chances = np.repeat(generator.beta(2, 3, size=tasks), each)
        solved = int((generator.random(tasks * each) < chances).sum())
        low, high = wilson(solved, tasks * each)
        return Estimate(solved / (tasks * each), 0.0, low, high, tasks * each, tasks * each, "Wilson"), 0.4

    return Case(f"success, {tasks} tasks with {each} attempts", "Wilson, attempts as tasks", draw, "not used")


CASES = (
    *(successes(tasks, most) for tasks in (25, 100) for most in (0.2, 1.0)),
    *(returns(tasks, kind) for tasks in (25, 100) for kind in ("normal", "exponential")),
    *(attempts(tasks, 4) for tasks in (25, 100)),
    *(_uneven(blocks) for blocks in (30, 100)),
    *(paired(tasks, each) for tasks in (25, 100) for each in (1, 4)),
    _whole_suite(18, 25),
    _whole_suite(4, 8),
    _rare_resampled(25, 0.05),
    _attempts_as_tasks(25, 4),
)


def exact_wilson(tasks: int) -> dict[str, float]:
    """Return mean, least and greatest coverage of Wilson's interval over chances 0.01, 0.02, ... 0.99, exactly."""
    intervals = [wilson(solved, tasks) for solved in range(tasks + 1)]
    found = []
    for chance in (step / 100 for step in range(1, 100)):
        held = [solved for solved, (low, high) in enumerate(intervals) if low <= chance <= high]
        found.append(sum(math.comb(tasks, n) * chance**n * (1 - chance) ** (tasks - n) for n in held))
    return {"mean": sum(found) / len(found), "least": min(found), "greatest": max(found)}


def hits(case: Case, trials: int) -> list[bool]:
    """Return for each trial whether the interval held the truth."""
    found = []
    for trial in range(trials):
        estimate, truth = case.draw(stream("coverage", case.name, case.method, trial), trial)
        found.append(bool(estimate.low <= truth <= estimate.high))
    return found


def row_of(number: int, trials: int) -> dict[str, Any]:
    """Return what is told of one case."""
    case = CASES[number]
    found = hits(case, trials)
    low, high = wilson(sum(found), trials)
    return {
        "case": case.name,
        "method": case.method,
        "kind": case.kind,
        "coverage": sum(found) / trials,
        "ci_low": low,
        "ci_high": high,
        "hits_in_first": sum(found[:FIRST]),
    }


def main(argv: Sequence[str]) -> int:
    """Simulate, print, and write the result; 1 if an interval that is used holds the truth too rarely or too often."""
    parser = arguments(__doc__, "interval_coverage.json")
    parser.add_argument("--trials", type=int, default=4000)
    given = parser.parse_args(argv)
    trials = max(FIRST, given.trials)
    start = time.perf_counter()
    with ProcessPoolExecutor(1) as pool:
        work = pool.map(row_of, range(len(CASES)), [trials] * len(CASES))
        rows = list(track(work, "simulating", total=len(CASES)))
    for row in rows:
        mark = "" if row["kind"] == "holds" else f"  ({row['kind']})"
        print(f"{row['coverage']:.1%}  {row['method']:<28}  {row['case']}{mark}")
    content = {
        "what": "share of synthetic data sets whose 95 % interval holds the true mean",
        "trials": trials,
        "seconds": round(time.perf_counter() - start),
        "cases": rows,
        "wilson_at_fixed_chances": {tasks: exact_wilson(tasks) for tasks in (25, 100, 400)},
    }
    write_result(given.out, content, "numpy")
    return 0 if all(BOUNDS[0] <= row["coverage"] <= BOUNDS[1] for row in rows if row["kind"] == "holds") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
