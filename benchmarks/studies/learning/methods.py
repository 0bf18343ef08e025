"""Learning curves of every method on one task: runs what benchmarks/results/methods.json lacks, and keeps each run.

    python benchmarks/studies/learning/methods.py              # the next runs, one after the other; Ctrl+C stops
    python benchmarks/studies/learning/methods.py --arms ppo gigpo --seeds 1 2
    python benchmarks/studies/learning/methods.py --page       # only the page, from the runs as they are

``methods.toml`` holds the arms. Run folders are in ``runs/studies/methods``; with the same command a later session goes
through the rest, without those folders too, since a finished run is read from the result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.benchmarks.studies.learning.method_page import write_page
from turngym.benchmarks.study.plan import Job, Plan, plan_of, read_plan
from turngym.benchmarks.study.queue import Ended, Queue, processor_seconds, state_of
from turngym.trainers.records.run_folder import RunFolder

HERE = Path(__file__).resolve().parent
TEACHER = "--algorithm grpo --warmup.demonstrations 600 --iterations 0 --max-seconds 0 --no-control"
EVALUATIONS = ("warmup-greedy", "warmup-sampled", "final-greedy", "final-sampled")
CURVE = "rollout/success"
KEPT = (
    *("credit/explained_variance", "loss/value_loss", "credit/groups_with_equal_returns"),
    *("loss/clip_fraction", "policy/kl_sampler", "rollout/invalid_actions"),
)


def outcome(folder: Path) -> dict[str, Any]:
    """Return what is kept of a finished run: success before and after, and over the iterations."""
    run = RunFolder(folder)
    evaluations, records = run.evaluations(), [each for each in run.metrics() if CURVE in each]
    kept = {name: [float(f"{each[name]:.3g}") for each in records if name in each] for name in KEPT}
    return {
        "success": {name: round(evaluations[name]["success"]["value"], 4) for name in EVALUATIONS},
        "episodes": evaluations["final-sampled"]["success"]["count"],
        "curve": [round(each[CURVE], 4) for each in records],
        **{name: values for name, values in kept.items() if values},
        "turns": records[-1]["turns_total"],
        "processor_seconds": round(processor_seconds(folder), 1),
    }


def run_one(plan: Plan, job: Job, folder: Path) -> bool:
    """Run one job, unless it is finished; returns whether it is."""
    if state_of(folder / job.name) != "finished":
        part = replace(plan, seeds=(job.seed,), arms={job.arm: plan.arms[job.arm]})
        ended: list[Ended] = Queue(part, folder, 1).run(lambda each: None, lambda left: None)
        for each in ended:
            print(f"{job.name}: status {each.status}, {each.seconds:.0f} s {each.words if each.status else ''}")
    sys.stdout.flush()
    return state_of(folder / job.name) == "finished"


def runs_of(out: Path) -> dict[str, dict[str, Any]]:
    """Return arm -> seed -> run of a result; empty without one."""
    found: dict[str, dict[str, Any]] = json.loads(out.read_text("utf8"))["runs"] if out.exists() else {}
    return found


def run_missing(plan: Plan, jobs: Sequence[Job], folder: Path, out: Path) -> None:
    """Run what the result lacks; a run that fails is left out.

    Args:
        plan: The plan.
        jobs: The runs, in their order.
        folder: Folder of the runs.
        out: The result, written after each run.
    """
    teacher = plan_of("teacher", {"arms": {"teacher": TEACHER}})
    for job in jobs:
        if str(job.seed) in runs_of(out).get(job.arm, {}):
            continue
        if "--teacher" in plan.arms[job.arm]:
            run_one(teacher, Job("teacher", job.seed), folder)
        if run_one(plan, job, folder):
            kept = runs_of(out)
            kept.setdefault(job.arm, {})[str(job.seed)] = outcome(folder / job.name)
            options = {arm: " ".join(words) for arm, words in plan.arms.items() if arm in kept}
            write_result(out, {"title": plan.title, "about": plan.about, "options": options, "runs": kept}, "torch")


def main(argv: Sequence[str]) -> int:
    """Run what is missing."""
    parser = arguments(__doc__, "methods.json")
    parser.add_argument("--plan", type=Path, default=HERE / "methods.toml")
    parser.add_argument("--arms", nargs="+", help="arms to run; all unless given")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds to run; all unless given")
    parser.add_argument("--page", action="store_true", help="only write the page of the methods")
    given = parser.parse_args(argv)
    if given.page:
        write_page()
        return 0
    plan = read_plan(given.plan)
    if unknown := sorted(set(given.arms or ()) - set(plan.arms)):
        parser.error(f"the plan has no arm {unknown[0]!r}")
    if unplanned := sorted(set(given.seeds or ()) - set(plan.seeds)):
        parser.error(f"the plan has no seed {unplanned[0]}")
    arms, seeds = given.arms or plan.arms, given.seeds or plan.seeds
    jobs = [job for job in plan.jobs if job.arm in arms and job.seed in seeds]
    if hasattr(os, "nice"):
        os.nice(max(19 - os.nice(0), 0))
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    run_missing(plan, jobs, Path("runs", "studies", plan.name), given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
