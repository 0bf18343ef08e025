"""How much stale samples cost: asynchronous rollouts on Sokoban, three seeds each.

Arms, written down before they ran: GRPO with samples up to 0, 1 and 4 iterations old, without a correction (ratios
against the sampler, with the clip), with truncated importance sampling against the policy at the start of the update,
and with A-3PO; 100,000 environment turns, the preset quickstart's learning rate and batch, warm start equal for
equal seeds, no control arm. A batch waits for what would become too old, so nothing is dropped.
"""

from __future__ import annotations

import sys

from run_queue import RESULTS, mean_and_range, run_all, summary, write_results

from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import write_curves

METHODS = ("grpo", "grpo+tis", "a3po")
STALENESS = (0, 1, 4)
SEEDS = (0, 1, 2)
TURNS = 100_000
COMMON = [
    *("--env", "turngym/Sokoban-v0", "--no-control", "--max-environment-turns", str(TURNS)),
    *("--max-seconds", "3600", "--evaluation.every", "5"),
]


def name_of(method: str, staleness: int, seed: int) -> str:
    """Return the name of an arm."""
    return f"staleness-{method}-{staleness}-seed{seed}"


ARMS = {
    name_of(method, staleness, seed): [
        *("--algorithm", method, "--seed", str(seed)),
        *("--rollout.schedule", "async", "--rollout.max-staleness", str(staleness)),
        *COMMON,
    ]
    for seed in SEEDS
    for staleness in STALENESS
    for method in METHODS
}


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/staleness.json`` and the picture."""
    folders = run_all(ARMS)
    runs = {name: summary(folder) for name, folder in folders.items()}
    for name, folder in folders.items():
        ages = [record["policy/staleness_mean"] for record in RunFolder(folder).metrics()]
        runs[name]["mean_staleness"] = sum(ages) / len(ages)
    write_results("staleness", {"arms": ARMS, "runs": runs})
    curves = {
        f"{method}, K = {staleness}": [folders[name_of(method, staleness, seed)] for seed in SEEDS]
        for method in METHODS
        for staleness in STALENESS
    }
    write_curves(curves, RESULTS / "staleness.png", f"Sokoban 6x6, one box, {TURNS:,} environment turns")
    print("success % on 200 held-out rooms: mean (smallest to largest of the seeds)")
    for method in METHODS:
        for staleness in STALENESS:
            mine = [runs[name_of(method, staleness, seed)] for seed in SEEDS]
            cells = [
                f"{key} {mean_and_range([run['evaluations'][key]['success']['value'] for run in mine])}"
                for key in ("warmup-sampled", "final-sampled", "final-greedy")
            ]
            ages = [run["mean_staleness"] for run in mine]
            print(f"{method:9} K = {staleness}  {'  '.join(cells)}  mean age {sum(ages) / len(ages):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
