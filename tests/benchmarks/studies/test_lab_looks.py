"""Looks of the laboratory: an experiment ends at the first one that leaves no test undecided."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))
from lab.decisions import FEWEST_SEEDS, LEVEL, decide, looks
from lab.experiment import Arm, Contrast
from lab.ledger import Job, Ledger
from lab.page import page
from lab.planning import COMPLETE, make_plan, pilot_jobs, run_experiment, summary
from lab.progress import looks_of, main_jobs, progress_of
from test_learning_lab import tiny

from turngym.benchmarks.statistics.power import interval, power, seeds_needed
from turngym.storage.files import write_json


def ledger_with(folder: Path, difference: float, spread: float, seeds: int) -> Ledger:
    """Return a ledger with a pilot, and main runs whose pairs differ by so much, give or take the spread."""
    experiment = replace(tiny(), effect=0.1)
    ledger = Ledger(experiment, folder)
    for job in [*pilot_jobs(experiment), *(Job(arm, "only", 0.1, s) for s in range(seeds) for arm in experiment.arms)]:
        noise = spread * (-1) ** job.seed
        final = 0.5 + (difference + noise if job.arm == "gigpo" else 0.0)
        line = {"curve": [final], "final": final, "mean": final, "turns": 1, "seconds": 0.0}
        ledger.add(job, {**line, "metrics": {"credit/turns_with_shared_anchor": 1.0}})
    return ledger


@pytest.mark.parametrize("seeds", [1, 20, FEWEST_SEEDS - 1, FEWEST_SEEDS, 150, 200])
def test_chance_of_a_wrong_verdict_is_five_percent_in_all(seeds: int) -> None:
    due = looks(seeds)
    assert sum(look.level for look in due) == pytest.approx(LEVEL) and due[-1].seeds == seeds
    assert [look.seeds for look in due] == sorted({look.seeds for look in due})


def test_looks_find_a_difference_that_is_not_there_in_at_most_five_percent() -> None:
    generator, wrong, studies = np.random.default_rng(0), 0, 600
    planned = [{"contrast": "new > old", "level": "only", "effect": 0.1, "power": 0.9}]
    row = {"contrast": "new > old", "level": "only", "claimed": True, "primary": True, "verdict": ""}
    for differences in generator.normal(0.0, 0.3, (studies, 200)):
        for look in looks(200):
            seen = differences[: look.seeds].tolist()
            found = decide(
                [{**row, "seeds": len(seen), "difference": interval(seen)._asdict()}], planned, "no", look.level
            )
            said = found["tests"][0]["said"]
            if said != "undecided":
                wrong += said in ("holds", "does not hold, worse")
                break
    assert wrong <= 0.05 * studies + 3 * (0.05 * 0.95 * studies) ** 0.5


@pytest.mark.parametrize(
    ("difference", "seeds", "verdict"), [(0.3, 50, "holds"), (0.0, 100, "does not hold"), (0.055, 200, "undecided")]
)
def test_experiment_ends_when_it_is_settled(difference: float, seeds: int, verdict: str, tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, difference, 0.4 if seeds > 50 else 0.3, seeds)
    found = run_experiment(ledger.experiment, at_once=1, folder=tmp_path)
    assert found["plan"]["seeds"] == 200 and [look[0] for look in found["plan"]["looks"]] == [50, 100, 200]
    assert (found["state"], found["decision"]["verdict"]) == (COMPLETE, verdict)
    assert found["decision"]["tests"][0]["seeds"] == found["contrasts"][0]["seeds"] == seeds
    assert len(Ledger(ledger.experiment, tmp_path).done) == found["runs"] == len(ledger.done), "nothing more ran"


def test_nothing_is_compared_before_a_look_is_due(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 0.3, 0.3, 50)
    run_experiment(ledger.experiment, at_once=1, folder=tmp_path)
    lines = ledger.path.read_text("utf8").splitlines(keepends=True)
    ledger.path.write_text("".join(lines[:-1]), "utf8")
    waiting = summary(Ledger(ledger.experiment, tmp_path))
    assert waiting["state"] == "99 main runs of at most 400" and "contrasts" not in waiting


def test_plans_without_looks_have_one_after_the_last_run() -> None:
    plan: dict[str, Any] = {"seeds": 177, "rates": {f"{arm} at only": 0.1 for arm in ("gigpo", "grpo")}}
    assert looks_of(plan) == [(177, 0.05)] and len(main_jobs(tiny(), plan, 177)) == 2 * 177


def test_power_is_that_of_the_last_look() -> None:
    needed = seeds_needed(0.1, 0.3, level=0.975)
    assert power(0.1, 0.3, needed, 0.975) >= 0.9 > power(0.1, 0.3, needed - 1, 0.975)
    assert needed > seeds_needed(0.1, 0.3)


def three_arms(folder: Path, large: Callable[[int], float], seeds: Mapping[str, int]) -> Ledger:
    """Return a ledger with a plan, in which one arm differs from the old one by a function of the seed, and one not."""
    method = tiny().arms["grpo"].method
    experiment = replace(
        tiny(),
        effect=0.1,
        arms={name: Arm(method) for name in ("old", "large", "none")},
        contrasts=tuple(Contrast(name, "old", ("only",)) for name in ("large", "none")),
    )
    ledger = Ledger(experiment, folder)
    for job in [*pilot_jobs(experiment), *(Job(arm, "only", 0.1, s) for arm in seeds for s in range(seeds[arm]))]:
        noise = (job.arm != "old") * 0.4 * (-1) ** job.seed
        final = 0.5 + noise + (large(job.seed) if job.arm == "large" else 0.0)
        line = {"curve": [final], "final": final, "mean": final, "turns": 1, "seconds": 0.0}
        ledger.add(job, {**line, "metrics": {}})
    if ledger.plan is None:
        write_json(ledger.plan_path, make_plan(experiment, ledger.done))
    return ledger


def test_arm_that_no_open_comparison_needs_runs_no_further(tmp_path: Path) -> None:
    ledger = three_arms(tmp_path, lambda seed: 0.5, {"old": 50, "large": 50, "none": 50})
    assert ledger.plan is not None
    due = progress_of(ledger, ledger.plan).due
    assert {job.arm for job in due} == {"old", "none"} and {job.seed for job in due} == set(range(50, 100))


@pytest.mark.parametrize("runs_of_the_large_one", [50, 100])
def test_verdict_of_an_earlier_look_stays(runs_of_the_large_one: int, tmp_path: Path) -> None:
    seeds = {"old": 100, "large": runs_of_the_large_one, "none": 100}
    found = summary(three_arms(tmp_path, lambda seed: 0.5 if seed < 50 else -0.5, seeds))
    assert found["state"] == COMPLETE
    tests = {test["contrast"]: (test["seeds"], test["said"]) for test in found["decision"]["tests"]}
    assert tests == {"large > old (final)": (50, "holds"), "none > old (final)": (100, "does not hold")}
    needed = found["plan"]["needed"]
    assert f"50 to 100 seeds ({needed} needed; looks at 50, 100, 200)" in page({"j": found})
