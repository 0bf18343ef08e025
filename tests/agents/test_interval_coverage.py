"""The coverage of the intervals: the committed figures hold, and the same trials give the same hits."""

import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.agents.intervals import cluster_bootstrap, share, tail, wilson

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "studies" / "checks" / "interval_coverage.py"
RESULT: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "interval_coverage.json").read_text("utf8"))


def script() -> Any:
    spec = importlib.util.spec_from_file_location("interval_coverage", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["interval_coverage"] = module
    spec.loader.exec_module(module)
    return module


COVERAGE = script()


def test_every_interval_that_is_used_covers_93_to_97_percent() -> None:
    used = [row for row in RESULT["cases"] if row["kind"] == "holds"]
    assert len(used) >= 16 and RESULT["trials"] >= 4000
    for row in used:
        assert 0.93 <= row["coverage"] <= 0.97, row["case"]
    methods = {row["method"] for row in used}
    assert methods == {
        "share (Wilson)",
        "share (cluster bootstrap)",
        "cluster bootstrap",
        "paired bootstrap",
        "equal-weight mean",
    }


def test_what_is_not_used_would_cover_too_little() -> None:
    rejected = [row for row in RESULT["cases"] if row["kind"] == "not used"]
    assert len(rejected) == 2 and all(row["ci_high"] < 0.93 for row in rejected)


def test_the_committed_cases_are_those_of_the_script() -> None:
    told = [(row["case"], row["method"], row["kind"]) for row in RESULT["cases"]]
    assert told == [(case.name, case.method, case.kind) for case in COVERAGE.CASES]


def test_the_first_trials_hit_as_often_as_was_written_down() -> None:
    for number in range(len(COVERAGE.CASES)):
        found = sum(COVERAGE.hits(COVERAGE.CASES[number], COVERAGE.FIRST))
        assert abs(found - RESULT["cases"][number]["hits_in_first"]) <= 1, "one, where the last bits of sums may differ"


def test_wilson_at_fixed_chances_jumps_about_its_mean() -> None:
    assert {int(tasks) for tasks in RESULT["wilson_at_fixed_chances"]} == {25, 100, 400}
    for tasks, told in RESULT["wilson_at_fixed_chances"].items():
        assert COVERAGE.exact_wilson(int(tasks)) == pytest.approx(told, abs=1e-9)
        assert 0.945 <= told["mean"] <= 0.96 and told["least"] > 0.87


def test_exact_coverage_of_wilson_agrees_with_drawing() -> None:
    tasks, chance = 25, 0.3
    solved = np.random.default_rng(0).binomial(tasks, chance, size=20_000)
    held = np.mean([low <= chance <= high for low, high in (wilson(int(n), tasks) for n in solved)])
    exact = sum(
        math.comb(tasks, n) * chance**n * (1 - chance) ** (tasks - n)
        for n in range(tasks + 1)
        if wilson(n, tasks)[0] <= chance <= wilson(n, tasks)[1]
    )
    assert held == pytest.approx(exact, abs=0.006)


def test_the_widened_tail_is_that_of_students_distribution() -> None:
    """Values of Phi(-sqrt(n / (n - 1)) t) from tables of t: 2.7764 (4 degrees), 2.0639 (24), 1.9842 (99)."""
    for blocks, quantile in ((5, 2.7764), (25, 2.0639), (100, 1.9842)):
        expected = math.erfc(math.sqrt(blocks / (blocks - 1)) * quantile / math.sqrt(2)) / 2
        assert tail(blocks) == pytest.approx(expected, abs=1e-5)
    assert tail(1) == 0.025 and tail(10**6) == pytest.approx(0.025, abs=1e-6)
    assert all(tail(n) < tail(n + 1) for n in range(2, 200))


def test_few_blocks_get_a_wider_interval_than_plain_percentiles() -> None:
    """Plain percentiles of 20 normal values are about as narrow as 0.95 of what they should be."""
    rng, plain, hits = np.random.default_rng(1), 0, 0
    for trial in range(400):
        values = rng.normal(size=12)
        found = cluster_bootstrap(values.tolist(), range(12), trial)
        hits += found.low <= 0 <= found.high
        means = rng.choice(values, size=(1000, 12)).mean(1)
        low, high = np.percentile(means, [2.5, 97.5])
        plain += bool(low <= 0 <= high)
    assert plain < 0.925 * 400 < hits


def test_success_without_exception_leaves_room_for_failure() -> None:
    found = share([1.0] * 25, range(25))
    assert (found.high, found.method) == (1.0, "Wilson") and found.low == pytest.approx(wilson(25, 25)[0])
    assert share([0.0] * 25, range(25)).high == pytest.approx(1 - found.low)
