"""The runs of an experiment as they are stored, one line each, and its plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lab.experiment import Experiment
from turngym.benchmarks.studies.harness import RESULTS as EVERYTHING
from turngym.storage.files import append_line, read_jsonl

RESULTS = EVERYTHING / "claims"


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
