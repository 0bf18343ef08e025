"""Results of a study: a mean with its interval per arm, a verdict with its power per claim."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turngym.arithmetic import is_finite
from turngym.benchmarks.statistics.power import UNBOUNDED, Interval, interval, is_known, power, seeds_needed, verdict
from turngym.benchmarks.study.plan import Claim, Job, Plan, Side
from turngym.benchmarks.study.queue import processor_seconds, state_of
from turngym.errors import ConfigError, nearest
from turngym.trainers.records.run_folder import RunFolder

WANTED_POWER = 0.9
_BOUNDS = {"success": (0.0, 1.0)}
"""Metric -> where its mean must be."""


@dataclass(frozen=True)
class ArmOutcome:
    """Values of one arm.

    Args:
        values: Seed -> value of each finished run.
        interval: Mean over the seeds and its 95 % interval; None with fewer than three or where all are the same.
        processor_seconds: Seed -> processor time of each finished run, where it is known.
    """

    values: Mapping[int, float]
    interval: Interval | None
    processor_seconds: Mapping[int, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean over the finished runs."""
        return statistics.fmean(self.values.values())


@dataclass(frozen=True)
class ClaimOutcome:
    """Verdict of paired differences on a claim.

    Args:
        claim: The claim.
        difference: Mean difference, the first arm minus the second.
        interval: The same with its 95 % interval; None with fewer than three pairs or where all are the same.
        verdict: ``holds``, ``does not hold`` or ``undecided``, which it is without an interval.
        seeds: Number of pairs.
        power: Probability that so many pairs show the effect that matters, if it is there; None without an interval.
        needed: Pairs that show it with a probability of 90 %; None without an interval.
    """

    claim: Claim
    difference: float
    interval: Interval | None
    verdict: str
    seeds: int
    power: float | None
    needed: int | None


@dataclass(frozen=True)
class Outcome:
    """All that is known so far.

    Args:
        plan: The plan.
        arms: Arm -> its values, without arms of which no run is finished.
        claims: Known results of the claims, without those that have no pair.
    """

    plan: Plan
    arms: Mapping[str, ArmOutcome]
    claims: tuple[ClaimOutcome, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        plan = self.plan
        return {
            "study": plan.name,
            "title": plan.title,
            "evaluation": plan.evaluation,
            "metric": plan.metric,
            "effect": plan.effect,
            "seeds": list(plan.seeds),
            "options": {arm: list(options) for arm, options in plan.arms.items()},
            "arms": {
                arm: {
                    "values": {str(seed): value for seed, value in found.values.items()},
                    "mean": found.mean,
                    "processor_seconds": {str(seed): value for seed, value in found.processor_seconds.items()},
                    **(found.interval._asdict() if found.interval else {}),
                }
                for arm, found in self.arms.items()
            },
            "claims": [
                {
                    "claim": str(each.claim),
                    "mean": each.difference,
                    "low": each.interval.low if each.interval else None,
                    "high": each.interval.high if each.interval else None,
                    "verdict": each.verdict,
                    "seeds": each.seeds,
                    "power": each.power,
                    "seeds_needed": each.needed,
                }
                for each in self.claims
            ],
        }


def read_outcome(plan: Plan, folder: Path) -> Outcome:
    """Return what the finished runs of a study say.

    Args:
        plan: The plan.
        folder: Folder of the study.

    Raises:
        ConfigError: The runs have no such evaluation or metric.
    """
    values = {arm: _values(plan, folder, Side(arm)) for arm in plan.arms}
    arms = {
        arm: ArmOutcome(
            found,
            _interval(list(found.values()), _BOUNDS.get(plan.metric, UNBOUNDED)),
            _times(folder, [Job(arm, s) for s in found]),
        )
        for arm, found in values.items()
        if found
    }
    claims = (_judged(plan, claim, *(_values(plan, folder, side) for side in claim)) for claim in plan.claims)
    return Outcome(plan, arms, tuple(each for each in claims if each is not None))


def _interval(values: Sequence[float], within: tuple[float, float]) -> Interval | None:
    return interval(values, within=within) if is_known(values) else None


def _times(folder: Path, jobs: Sequence[Job]) -> dict[int, float]:
    """Return seed -> processor time of the runs of which it is known."""
    found = {job.seed: processor_seconds(folder / job.name) for job in jobs}
    return {seed: seconds for seed, seconds in found.items() if seconds}


def _values(plan: Plan, folder: Path, side: Side) -> dict[int, float]:
    """Return seed -> value of the finished runs."""
    jobs = [Job(side.arm, seed) for seed in plan.seeds]
    return {
        job.seed: _value(plan, folder, job, side.evaluation or plan.evaluation)
        for job in jobs
        if state_of(folder / job.name) == "finished"
    }


def _value(plan: Plan, folder: Path, job: Job, evaluation: str) -> float:
    evaluations = RunFolder(folder / job.name).evaluations()
    if evaluation not in evaluations:
        raise ConfigError(
            f"{plan.name}: the run {job.name} has no evaluation {evaluation!r}. {nearest(evaluation, evaluations)}"
        )
    found = evaluations[evaluation]
    metrics = [name for name, value in found.items() if isinstance(value, Mapping) and "value" in value]
    if plan.metric not in metrics:
        raise ConfigError(f"{plan.name}: evaluations have no metric {plan.metric!r}. {nearest(plan.metric, metrics)}")
    value = found[plan.metric]["value"]
    if not is_finite(value):
        raise ConfigError(
            f"{plan.name}: the run {job.name} has no {plan.metric} in the evaluation {evaluation!r}, got {value}: "
            "run it again, or leave its arm out."
        )
    return float(value)


def _judged(plan: Plan, claim: Claim, better: Mapping[int, float], worse: Mapping[int, float]) -> ClaimOutcome | None:
    """Return what the pairs of finished runs say; None without any."""
    differences = [better[seed] - worse[seed] for seed in plan.seeds if seed in better and seed in worse]
    if not differences:
        return None
    low, high = _BOUNDS.get(plan.metric, UNBOUNDED)
    mean, found = statistics.fmean(differences), _interval(differences, (low - high, high - low))
    if found is None:
        return ClaimOutcome(claim, mean, None, "undecided", len(differences), None, None)
    deviation = statistics.stdev(differences)
    return ClaimOutcome(
        claim,
        mean,
        found,
        verdict(found, plan.effect),
        len(differences),
        power(plan.effect, deviation, len(differences)),
        seeds_needed(plan.effect, deviation, WANTED_POWER),
    )
