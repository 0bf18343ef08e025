"""An experiment of the laboratory: pilot, plan, main runs, and their verdicts; it resumes where it stopped.

The pilot chooses each arm's step size on seeds of its own and measures how much differences spread. The plan that comes
of it, step sizes, number of seeds and the looks, is written down before the first main run. Runs are compared when a
look is due and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.decisions import LEVEL, looks
from lab.experiment import LEAST_SEEDS, PILOT_SEEDS, WANTED_POWER, Experiment, outcome
from lab.ledger import RESULTS, Job, Ledger
from lab.progress import arm_of, main_jobs, progress_of
from lab.runs import Setting, run
from turngym.benchmarks.statistics.power import power, seeds_needed, upper_deviation
from turngym.storage.files import write_json

COMPLETE = "complete"


def pilot_jobs(experiment: Experiment) -> list[Job]:
    """Return the runs of the pilot: every step size of every arm."""
    return [
        Job(arm, level, rate, seed)
        for arm, level in experiment.cells()
        for rate in experiment.rates
        for seed in PILOT_SEEDS
    ]


def _best_rates(experiment: Experiment, done: Mapping[Job, Mapping[str, Any]]) -> dict[str, float]:
    """Return ``arm at level`` -> the step size with the highest mean success over the pilot's runs."""

    def quality(arm: str, level: str, rate: float) -> float:
        return fmean(outcome(done[Job(arm, level, rate, seed)], "mean") for seed in PILOT_SEEDS)

    return {
        f"{arm} at {level}": max(experiment.rates, key=lambda rate: quality(arm, level, rate))
        for arm, level in experiment.cells()
    }


def make_plan(experiment: Experiment, done: Mapping[Job, Mapping[str, Any]]) -> dict[str, Any]:
    """Return step sizes, number of seeds and looks, from the pilot.

    Every comparison of an experiment has the same seeds: as many as the primary one at a claimed level needs that
    spreads most at the last look, at least 20 and at most 200, or as many as the experiment says.
    """
    rates = _best_rates(experiment, done)
    spreads: dict[tuple[str, str], tuple[float, float]] = {}
    for contrast in experiment.contrasts:
        for level in contrast.claimed_at:
            sides = []
            for arm in (contrast.better, contrast.worse):
                place = experiment.level_of(arm, level)
                rate = rates[f"{arm} at {place}"]
                jobs = [Job(arm, place, rate, seed) for seed in PILOT_SEEDS]
                sides.append([outcome(done[job], contrast.outcome) for job in jobs])
            differences = [first - second for first, second in zip(*sides, strict=True)]
            spreads[contrast.title, level] = experiment.effect_of(contrast), upper_deviation(differences)
    primary = {contrast.title for contrast in experiment.contrasts if contrast.primary}
    widest = [each for (name, _), each in spreads.items() if name in primary]
    needed = max(seeds_needed(effect, spread) for effect, spread in widest)
    last = looks(needed)[-1].level
    if last < LEVEL:
        needed = max(seeds_needed(effect, spread, level=1 - last) for effect, spread in widest)
    seeds = min(max(needed, LEAST_SEEDS), experiment.most_seeds)
    due = looks(seeds)
    rows = [
        {
            "contrast": contrast,
            "level": level,
            "effect": effect,
            "deviation": spread,
            "power": round(power(effect, spread, seeds, 1 - due[-1].level), 3),
        }
        for (contrast, level), (effect, spread) in spreads.items()
    ]
    pilot = {"pilot_seeds": list(PILOT_SEEDS), "rates": rates, "contrasts": rows}
    return {"wanted_power": WANTED_POWER, "needed": needed, "seeds": seeds, "looks": due, **pilot}


def _work(setting: Setting, experiment: Experiment, job: Job) -> tuple[Job, dict[str, Any]]:
    arm = experiment.arms[job.arm]
    return job, run(arm.setting(setting), arm.method, job.rate, job.seed)


def run_jobs(ledger: Ledger, jobs: Iterable[Job], at_once: int) -> None:
    """Run what is missing, storing each run as soon as it is done."""
    experiment, missing = ledger.experiment, ledger.missing(jobs)
    if at_once == 1:
        for job in missing:
            ledger.add(*_work(experiment.levels[job.level], experiment, job))
        return
    pool = ProcessPoolExecutor(at_once)
    try:
        waiting = [pool.submit(_work, experiment.levels[job.level], experiment, job) for job in missing]
        for each in as_completed(waiting):
            ledger.add(*each.result())
    finally:
        pool.shutdown(cancel_futures=True)


def run_experiment(experiment: Experiment, at_once: int, folder: Path = RESULTS) -> dict[str, Any]:
    """Run what is missing of an experiment, and write what it says."""
    ledger = Ledger(experiment, folder)
    run_jobs(ledger, pilot_jobs(experiment), at_once)
    if ledger.plan is None:
        write_json(ledger.plan_path, make_plan(experiment, ledger.done))
    plan = ledger.plan
    assert plan is not None
    while due := progress_of(ledger, plan).due:
        run_jobs(ledger, due, at_once)
    found = summary(ledger)
    write_json(folder / f"{experiment.name}.json", found)
    return found


def summary(ledger: Ledger) -> dict[str, Any]:
    """Return what an experiment found; without verdicts as long as a main run is missing."""
    experiment, plan = ledger.experiment, ledger.plan
    about = (experiment.about or "").partition("\n\n")[2].strip().replace("``", "`")
    head = {"claim": experiment.claim, "about": about, "source": experiment.source, "varied": experiment.varied}
    command = f"python benchmarks/studies/learning/laboratory.py run {experiment.name}"
    if plan is None:
        return {**head, "command": command, "state": "the pilot is not complete"}
    found = progress_of(ledger, plan)
    if found.due:
        every = main_jobs(experiment, plan, plan["seeds"])
        state = f"{len(every) - len(ledger.missing(every))} main runs of at most {len(every)}"
        return {**head, "command": command, "plan": plan, "state": state}
    return {
        **head,
        "command": command,
        "plan": plan,
        "state": COMPLETE,
        "hours": round(sum(line["seconds"] for line in ledger.done.values()) / 3600, 2),
        "runs": len(ledger.done),
        "arms": [arm_of(ledger, plan, cell, found.seeds[cell]) for cell in experiment.cells()],
        "decision": found.decision,
        "contrasts": found.rows,
    }
