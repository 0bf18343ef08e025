"""ppo, turn_ppo, grpo and gigpo on Sokoban at equal environment turns, three seeds each.

Arms, written down before they ran: every method with the default settings of version 0.1.0 and the preset quickstart's
learning rate and batch; 100,000 environment turns; warm start equal for equal seeds; no control arm.
"""

from __future__ import annotations

import sys

from run_queue import RESULTS, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results

from turngym.trainers.report.curve import write_curves

METHODS = ("ppo", "turn_ppo", "grpo", "gigpo")
SEEDS = (0, 1, 2)
TURNS = 100_000
COMMON = [
    *("--env", "turngym/Sokoban-v0", "--no-control", "--max-environment-turns", str(TURNS)),
    *("--max-seconds", "480", "--evaluation.every", "5"),
]
ARMS = {
    f"compare-{method}-seed{seed}": [*with_settings_of_0_1_0(["--algorithm", method]), "--seed", str(seed), *COMMON]
    for seed in SEEDS
    for method in METHODS
}


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/compare.json`` and the picture."""
    folders = run_all(ARMS)
    runs = {name: summary(folder) for name, folder in folders.items()}
    write_results("compare", {"arms": ARMS, "runs": runs})
    by_method = {m: [folders[f"compare-{m}-seed{s}"] for s in SEEDS] for m in METHODS}
    write_curves(by_method, RESULTS / "compare.png", f"Sokoban 6x6, one box, {TURNS:,} environment turns")
    print("success % on 200 held-out rooms: mean (smallest to largest of the seeds)")
    for method in METHODS:
        mine = [runs[f"compare-{method}-seed{seed}"] for seed in SEEDS]
        cells = []
        for key in ("warmup-sampled", "final-sampled", "warmup-greedy", "final-greedy"):
            cells.append(f"{key} {mean_and_range([run['evaluations'][key]['success']['value'] for run in mine])}")
        seconds = [run["training_seconds"] for run in mine]
        print(f"{method:9} {'  '.join(cells)}  {min(seconds):.0f} to {max(seconds):.0f} s of training")
    return 0


if __name__ == "__main__":
    sys.exit(main())
