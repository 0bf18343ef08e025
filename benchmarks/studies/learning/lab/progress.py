"""Which main runs an experiment still needs, and what those so far say.

Runs are compared when a look is due. A comparison that is settled there keeps its verdict and its seeds, and an arm
that no open comparison needs is not run any further. The chance of a wrong verdict at a look stays below the look's
level: Holm's correction goes over all tests of the claim, settled ones with the p-values that they were settled by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

from lab.decisions import LEVEL, OPEN, Look, decide
from lab.experiment import Contrast, Experiment, outcome
from lab.ledger import Job, Ledger
from turngym.benchmarks.statistics.power import interval, verdict

NEVER_ACTED = "not tested: it never acted"


class Comparison(NamedTuple):
    """A contrast at a level."""

    contrast: Contrast
    level: str

    @property
    def key(self) -> tuple[str, str]:
        """Names of contrast and level, as results have them."""
        return self.contrast.title, self.level


class Progress(NamedTuple):
    """How far an experiment is.

    Args:
        due: Main runs that the next look needs; nothing is compared as long as there are some.
        seeds: Arm and level -> how many seeds have been compared.
        rows: What each comparison says.
        decision: What they say together.
    """

    due: list[Job]
    seeds: Mapping[tuple[str, str], int]
    rows: list[dict[str, Any]]
    decision: dict[str, Any]


def looks_of(plan: Mapping[str, Any]) -> list[Look]:
    """Return when a plan's runs are compared; those of the first plans had one look."""
    return [Look(*each) for each in plan.get("looks", [(plan["seeds"], LEVEL)])]


def main_jobs(
    experiment: Experiment, plan: Mapping[str, Any], seeds: int, cells: Iterable[tuple[str, str]] | None = None
) -> list[Job]:
    """Return the main runs of the first seeds, seed by seed, so that a stopped queue has whole pairs.

    Args:
        experiment: The experiment.
        plan: Its plan.
        seeds: How many seeds.
        cells: The arms with their levels; all of them by default.
    """
    chosen = experiment.cells() if cells is None else list(cells)
    rates = plan["rates"]
    return [Job(arm, level, rates[f"{arm} at {level}"], seed) for seed in range(seeds) for arm, level in chosen]


def progress_of(ledger: Ledger, plan: Mapping[str, Any]) -> Progress:
    """Return what the main runs so far say, and which are due."""
    experiment = ledger.experiment
    comparisons = [Comparison(contrast, level) for contrast in experiment.contrasts for level in experiment.levels]
    seeds: dict[tuple[str, str], int] = {}
    settled: dict[tuple[str, str], str] = {}
    at: dict[tuple[str, str], int] = {}
    rows: list[dict[str, Any]] = []
    decision: dict[str, Any] = {}
    for number, look in enumerate(looks_of(plan)):
        still_open = experiment.cells() if number == 0 else _cells_of(experiment, comparisons, settled)
        due = ledger.missing(main_jobs(experiment, plan, look.seeds, still_open))
        if due:
            return Progress(due, seeds, [], {})
        seeds.update(dict.fromkeys(still_open, look.seeds))
        for each in comparisons:
            if each.key not in settled:
                at[each.key] = min(seeds[cell] for cell in _sides(experiment, each))
        rows = [row_of(ledger, plan, each, at[each.key]) for each in comparisons]
        decision = decide(rows, plan["contrasts"], NEVER_ACTED, look.level, settled)
        settled.update({(row["contrast"], row["level"]): NEVER_ACTED for row in rows if row["verdict"] == NEVER_ACTED})
        settled.update({(t["contrast"], t["level"]): t["said"] for t in decision["tests"] if t["said"] != OPEN})
        if all(test["said"] != OPEN for test in decision["tests"]):
            break
    return Progress([], seeds, rows, decision)


def _sides(experiment: Experiment, comparison: Comparison) -> list[tuple[str, str]]:
    """Return the arms of a comparison with the levels that their runs are stored under."""
    arms = (comparison.contrast.better, comparison.contrast.worse)
    return [(arm, experiment.level_of(arm, comparison.level)) for arm in arms]


def _cells_of(
    experiment: Experiment, comparisons: Iterable[Comparison], settled: Mapping[tuple[str, str], str]
) -> list[tuple[str, str]]:
    """Return the arms with their levels that tests need which are not settled."""
    needed = {
        cell
        for each in comparisons
        if each.contrast.primary and each.level in each.contrast.claimed_at and each.key not in settled
        for cell in _sides(experiment, each)
    }
    return [cell for cell in experiment.cells() if cell in needed]


def lines_of(ledger: Ledger, plan: Mapping[str, Any], cell: tuple[str, str], seeds: int) -> list[Mapping[str, Any]]:
    """Return the runs of an arm at a level, by seed."""
    rate = plan["rates"]["{} at {}".format(*cell)]
    return [ledger.done[Job(*cell, rate, seed)] for seed in range(seeds)]


def arm_of(ledger: Ledger, plan: Mapping[str, Any], cell: tuple[str, str], seeds: int) -> dict[str, Any]:
    """Return the outcomes and the metrics of an arm, and whether what it tests has acted."""
    arm, level = cell
    lines, declared = lines_of(ledger, plan, cell, seeds), ledger.experiment.arms[arm]
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


def row_of(ledger: Ledger, plan: Mapping[str, Any], comparison: Comparison, seeds: int) -> dict[str, Any]:
    """Return what a comparison says; it has no verdict where what it tests never acted."""
    contrast, level = comparison
    cells = _sides(ledger.experiment, comparison)
    sides = [[outcome(line, contrast.outcome) for line in lines_of(ledger, plan, cell, seeds)] for cell in cells]
    found = interval([first - second for first, second in zip(*sides, strict=True)])
    acted = all(arm_of(ledger, plan, cells[0], seeds)["acted"].values())
    return {
        "contrast": contrast.title,
        "level": level,
        "claimed": level in contrast.claimed_at,
        "primary": contrast.primary,
        "better": fmean(sides[0]),
        "worse": fmean(sides[1]),
        "difference": found._asdict(),
        "seeds": seeds,
        "verdict": verdict(found, ledger.experiment.effect_of(contrast)) if acted else NEVER_ACTED,
    }
