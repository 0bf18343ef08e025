"""The queue of the laboratory: pilot, plan, main runs, and what they say; it goes on where it was stopped.

The pilot chooses each arm's step size on seeds of its own and measures how much differences spread. The plan that comes
of it, step sizes, number of seeds and the looks, is written down before the first main run. Runs are compared when a
look is due and not before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from lab.decisions import decide, is_settled
from lab.experiment import LEAST_SEEDS, PILOT_SEEDS, WANTED_POWER, Contrast, Experiment, outcome
from lab.looks import LEVEL, Look, looks
from lab.runs import Setting, run
from turngym.benchmarks.statistics.power import interval, power, seeds_needed, upper_deviation, verdict
from turngym.storage.files import append_line, read_jsonl, write_json

RESULTS = Path(__file__).parents[3] / "results" / "claims"

COMPLETE = "complete"
NEVER_ACTED = "not tested: it never acted"


class Job(NamedTuple):
    """One run."""

    arm: str
    level: str
    rate: float
    seed: int


class Ledger:
    """The runs of an experiment, one line each.

    Args:
        experiment: The experiment.
        folder: Where results lie.
    """

    def __init__(self, experiment: Experiment, folder: Path = RESULTS) -> None:
        self.experiment = experiment
        self.folder = folder
        self.path = folder / f"{experiment.name}.runs.jsonl"
        self.plan_path = folder / f"{experiment.name}.plan.json"
        lines = read_jsonl(self.path) if self.path.exists() else []
        self.done = {Job(*line["job"]): line for line in lines}

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that have not run, once each."""
        return [job for job in dict.fromkeys(jobs) if job not in self.done]

    def add(self, job: Job, found: Mapping[str, Any]) -> None:
        """Store a run."""
        kept = self.experiment.kept_metrics()
        metrics = {name: float(f"{value:.4g}") for name, value in found["metrics"].items() if name in kept}
        line = {"job": list(job), **found, "metrics": metrics, "seconds": round(found["seconds"], 2)}
        self.folder.mkdir(parents=True, exist_ok=True)
        append_line(self.path, json.dumps(line))
        self.done[job] = line

    @property
    def plan(self) -> dict[str, Any] | None:
        """What was decided after the pilot; None before."""
        return dict(json.loads(self.plan_path.read_text("utf8"))) if self.plan_path.exists() else None


def pilot_jobs(experiment: Experiment) -> list[Job]:
    """Return the runs of the pilot: every step size of every arm."""
    return [
        Job(arm, level, rate, seed)
        for arm, level in experiment.cells()
        for rate in experiment.rates
        for seed in PILOT_SEEDS
    ]


def best_rates(experiment: Experiment, done: Mapping[Job, Mapping[str, Any]]) -> dict[str, float]:
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
    rates = best_rates(experiment, done)
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
            spreads[_name(contrast), level] = experiment.effect_of(contrast), upper_deviation(differences)
    primary = {_name(contrast) for contrast in experiment.contrasts if contrast.primary}
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


def looks_of(plan: Mapping[str, Any]) -> list[Look]:
    """Return when a plan's runs are compared; those of the first plans had one look."""
    return [Look(*each) for each in plan.get("looks", [(plan["seeds"], LEVEL)])]


def _name(contrast: Contrast) -> str:
    return f"{contrast.better} > {contrast.worse} ({contrast.outcome})"


def main_jobs(experiment: Experiment, plan: Mapping[str, Any], seeds: int) -> list[Job]:
    """Return the main runs of the first seeds, seed by seed, so that a stopped queue has whole pairs."""
    return [
        Job(arm, level, plan["rates"][f"{arm} at {level}"], seed)
        for seed in range(seeds)
        for arm, level in experiment.cells()
    ]


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
    for look in looks_of(plan):
        run_jobs(ledger, main_jobs(experiment, plan, look.seeds), at_once)
        found = summary(ledger)
        if found["state"] == COMPLETE:
            break
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
    for look in looks_of(plan):
        jobs = main_jobs(experiment, plan, look.seeds)
        missing = len(ledger.missing(jobs))
        if missing:
            at_most = len(main_jobs(experiment, plan, plan["seeds"]))
            return {
                **head,
                "command": command,
                "plan": plan,
                "state": f"{len(jobs) - missing} main runs of at most {at_most}",
            }
        rows = [row for contrast in experiment.contrasts for row in _rows(ledger, plan, contrast, look.seeds)]
        decision = decide(rows, plan["contrasts"], NEVER_ACTED, look.level)
        if is_settled(decision):
            break
    return {
        **head,
        "command": command,
        "plan": plan,
        "state": COMPLETE,
        "hours": round(sum(line["seconds"] for line in ledger.done.values()) / 3600, 2),
        "runs": len(ledger.done),
        "seeds": look.seeds,
        "arms": [_arm(ledger, plan, arm, level, look.seeds) for arm, level in experiment.cells()],
        "decision": decision,
        "contrasts": rows,
    }


def _lines(ledger: Ledger, plan: Mapping[str, Any], arm: str, level: str, seeds: int) -> list[Mapping[str, Any]]:
    place = ledger.experiment.level_of(arm, level)
    rate = plan["rates"][f"{arm} at {place}"]
    return [ledger.done[Job(arm, place, rate, seed)] for seed in range(seeds)]


def _arm(ledger: Ledger, plan: Mapping[str, Any], arm: str, level: str, seeds: int) -> dict[str, Any]:
    """Return the outcomes and the metrics of an arm, and whether what it tests has acted."""
    lines, declared = _lines(ledger, plan, arm, level, seeds), ledger.experiment.arms[arm]
    names = sorted({name for line in lines for name in line["metrics"]})
    metrics = {name: fmean(line["metrics"].get(name, 0.0) for line in lines) for name in names}
    return {
        "arm": arm,
        "level": level,
        "rate": plan["rates"][f"{arm} at {level}"],
        "final": fmean(outcome(line, "final") for line in lines),
        "mean": fmean(outcome(line, "mean") for line in lines),
        "collapsed": 1 - fmean(outcome(line, "kept") for line in lines),
        "curve": [round(fmean(points), 4) for points in zip(*(line["curve"] for line in lines), strict=False)],
        "turns": round(fmean(line["turns"] for line in lines)),
        "metrics": {name: float(f"{value:.4g}") for name, value in metrics.items()},
        "acted": {name: metrics.get(name, 0.0) >= least for name, least in declared.acts.items()},
    }


def _rows(ledger: Ledger, plan: Mapping[str, Any], contrast: Contrast, seeds: int) -> list[dict[str, Any]]:
    """Return what a contrast says at each level; nothing where what it tests never acted."""
    rows = []
    for level in ledger.experiment.levels:
        sides = [
            [outcome(line, contrast.outcome) for line in _lines(ledger, plan, arm, level, seeds)]
            for arm in (contrast.better, contrast.worse)
        ]
        differences = [first - second for first, second in zip(*sides, strict=True)]
        found = interval(differences)
        place = ledger.experiment.level_of(contrast.better, level)
        acted = all(_arm(ledger, plan, contrast.better, place, seeds)["acted"].values())
        said = verdict(found, ledger.experiment.effect_of(contrast)) if acted else NEVER_ACTED
        rows.append(
            {
                "contrast": _name(contrast),
                "level": level,
                "claimed": level in contrast.claimed_at,
                "primary": contrast.primary,
                "better": fmean(sides[0]),
                "worse": fmean(sides[1]),
                "difference": found._asdict(),
                "seeds": len(differences),
                "verdict": said,
            }
        )
    return rows
