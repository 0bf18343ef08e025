"""The claims of the papers in miniature: which hold on a laptop's tasks, with three seeds each.

    python benchmarks/studies/learning/claims.py            # every experiment
    python benchmarks/studies/learning/claims.py a c        # these

Arms, written down before they ran. Every run has the embedded model, the default warm-up and learning rate, one torch
thread and at most eight minutes; runs of one experiment have equal environment turns. Finished runs are kept,
broken-off ones go on, two at a time. A claim holds if the 95 % interval of the difference over the seeds (paired by
seed, Student's t) lies above 0 in the direction that the paper claims, it does not hold if it lies below 0, and is
undecided otherwise. In (f) the two splits cost about the same time of one core.
All arms have the method settings of version 0.1.0, written out.

- (a) Anchor states: gigpo and hgpo against grpo on Sokoban, where states repeat.
- (b) A turn as the action: turn_ppo against ppo and grpo on Sokoban.
- (c) Reusing a batch for many updates: ppo+s_ppo and ppo+st_ppo against ppo with 8 epochs of 4 minibatches.
- (d) EPO against a plain entropy bonus where only the end pays: a small maze of at most 40 turns, and, added when
  episodes there turned out to take 18 turns, a slippery lake of 8 x 8 cells where the expert takes 38 turns. In version
  0.1.0 EPO added to grpo's own entropy bonus of 0.01; now it takes its place, so these two arms cannot be repeated.
- (e) Return batch normalisation (reinforce) against grpo with a reward in every turn: Sokoban's own, and, added
  afterwards, progress through a maze after a short warm-up. (Progress was to be rewarded in Sokoban, too, but with one
  box it moves only when the game is won: the first arms of (f) showed it, where dense and sparse were the same to the
  last digit. They ran again in the maze.)
- (f) Dense against sparse rewards in that maze; and one budget split between supervised and reinforcement learning.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from run_queue import RESULTS, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results
from verdicts import SEEDS, difference, in_points

from turngym.storage.files import write_atomic
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import write_curves

COMMON = ("--no-control", "--max-seconds", "480", "--evaluation.every", "5")
DENSE = ("--wrapper", "progress_reward")
MAZE = ("--env", "turngym/MazeEasy-v0", "--env-options", "max_turns=40")
SHORT_WARMUP = (*MAZE, "--warmup.epochs", "8")
DENSE_MAZE = (*SHORT_WARMUP, "--wrapper", "progress_reward:zero_when=never")
LAKE = ("--env", "turngym/FrozenLakeSlippery-v0", "--env-options", "size=8", "max_turns=100")


def turns(count: int) -> tuple[str, ...]:
    """Return the options for so many environment turns."""
    return ("--max-environment-turns", str(count))


EXPERIMENTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "a": {name: ("--algorithm", name, *turns(80_000)) for name in ("grpo", "gigpo", "hgpo")},
    "b": {name: ("--algorithm", name, *turns(80_000)) for name in ("ppo", "grpo", "turn_ppo")},
    "c": {
        name: ("--algorithm", name, "--update.epochs", "8", "--update.minibatches", "4", *turns(12_000))
        for name in ("ppo", "ppo+s_ppo", "ppo+st_ppo")
    },
    "d": {
        "bonus": (*MAZE, "--algorithm", "grpo", "--grpo.entropy-coef", "0.01", *turns(80_000)),
        "epo": (*MAZE, "--algorithm", "grpo+epo", *turns(80_000)),
        "lake-bonus": (*LAKE, "--algorithm", "grpo", "--grpo.entropy-coef", "0.01", *turns(60_000)),
        "lake-epo": (*LAKE, "--algorithm", "grpo+epo", *turns(60_000)),
    },
    "e": {
        "grpo": (*DENSE, "--algorithm", "grpo", *turns(60_000)),
        "rebn": (*DENSE, "--algorithm", "reinforce", *turns(60_000)),
        "maze-grpo": (*DENSE_MAZE, "--algorithm", "grpo", *turns(80_000)),
        "maze-rebn": (*DENSE_MAZE, "--algorithm", "reinforce", *turns(80_000)),
    },
    "f": {
        "sparse": (*SHORT_WARMUP, "--algorithm", "ppo", *turns(80_000)),
        "dense": (*DENSE_MAZE, "--algorithm", "ppo", *turns(80_000)),
        "rl-heavy": ("--algorithm", "ppo", "--warmup.epochs", "6", *turns(60_000)),
        "sft-heavy": ("--algorithm", "ppo", "--warmup.epochs", "25", *turns(38_000)),
    },
}
"""Experiment -> arm -> the options of ``turngym train``."""

CLAIMS: Mapping[str, Sequence[tuple[str, str]]] = {
    "a": (("gigpo", "grpo"), ("hgpo", "grpo"), ("hgpo", "gigpo")),
    "b": (("turn_ppo", "ppo"), ("turn_ppo", "grpo")),
    "c": (("ppo+s_ppo", "ppo"), ("ppo+st_ppo", "ppo")),
    "d": (("epo", "bonus"), ("lake-epo", "lake-bonus")),
    "e": (("rebn", "grpo"), ("maze-rebn", "maze-grpo")),
    "f": (("dense", "sparse"), ("rl-heavy", "sft-heavy")),
}
"""Experiment -> which arm shall beat which."""


def arms(experiment: str) -> dict[str, list[str]]:
    """Return the name of every run of an experiment with its options."""
    return {
        run_name(experiment, arm, seed): [*with_settings_of_0_1_0(options), "--seed", str(seed), *COMMON]
        for seed in SEEDS
        for arm, options in EXPERIMENTS[experiment].items()
    }


def run_name(experiment: str, arm: str, seed: int) -> str:
    """Return the folder of a run; (a) and (b) share their equal arms."""
    if experiment in ("a", "b"):
        return f"claim-sokoban-{arm}-seed{seed}"
    return f"claim-{experiment}-{arm}-seed{seed}"


def stability(folder: Path) -> dict[str, float]:
    """Return how steady a run was: best and last dev success, and the extremes of what shows a collapse coming."""
    metrics = RunFolder(folder).metrics()

    def all_of(key: str) -> list[float]:
        return [float(record[key]) for record in metrics if key in record]

    success, clipped, norms = all_of("eval/success"), all_of("loss/clip_fraction_token"), all_of("train/grad_norm")
    return {
        "best_dev_success": max(success),
        "last_dev_success": success[-1],
        "mean_clip_fraction": statistics.fmean(clipped),
        "largest_clip_fraction": max(clipped),
        "mean_grad_norm": statistics.fmean(norms),
        "largest_grad_norm": max(norms),
        "smallest_ess": min(all_of("policy/ess")),
    }


def run_experiment(experiment: str) -> dict[str, Any]:
    """Run what is missing of an experiment; draw its curves and return its figures."""
    folders = run_all(arms(experiment))
    runs = {name: summary(folder) for name, folder in folders.items()}
    by_arm = {arm: [folders[run_name(experiment, arm, seed)] for seed in SEEDS] for arm in EXPERIMENTS[experiment]}
    write_curves(by_arm, RESULTS / f"claims-{experiment}.png", f"claims ({experiment})")
    found = {arm: sampled(experiment, arm, runs, "final") for arm in EXPERIMENTS[experiment]}
    verdicts = {f"{first} > {second}": difference(found[first], found[second]) for first, second in CLAIMS[experiment]}
    steadiness = {name: stability(folder) for name, folder in folders.items()}
    return {
        "arms": arms(experiment),
        "before": before_of(experiment, runs),
        "success": found,
        "claims": verdicts,
        "stability": steadiness,
        "runs": runs,
    }


def before_of(experiment: str, runs: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return arm -> success on test instances after the warm-up, a value a seed."""
    return {arm: sampled(experiment, arm, runs, "warmup") for arm in EXPERIMENTS[experiment]}


def sampled(experiment: str, arm: str, runs: Mapping[str, Any], stage: str) -> list[float]:
    """Return the success of sampled play on test instances at a stage of an arm's runs, a value a seed."""
    mine = [runs[run_name(experiment, arm, seed)]["evaluations"] for seed in SEEDS]
    return [each[f"{stage}-sampled"]["success"]["value"] for each in mine]


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return Markdown tables: the verdicts, the arms of all experiments, and how steady the runs of (c) were."""
    lines = ["| claim | difference after training, points [95 %] | verdict |", "|---|---|---|"]
    for experiment, result in results.items():
        for claim, found in result["claims"].items():
            lines.append(f"| ({experiment}) {claim} | {in_points(found)} | {found['verdict']} |")
    lines += ["", "| arm | after warm-up, % | after training, % |", "|---|---|---|"]
    for experiment, result in results.items():
        for arm, values in result["success"].items():
            before = mean_and_range(result["before"][arm])
            lines.append(f"| ({experiment}) {arm} | {before} | {mean_and_range(values)} |")
    for experiment in set(results) & {"c"}:
        lines += ["", *_steadiness(experiment, results[experiment]["stability"])]
    return "\n".join(lines) + "\n"


def _steadiness(experiment: str, runs: Mapping[str, Mapping[str, float]]) -> list[str]:
    columns = list(next(iter(runs.values())))
    head = [
        f"| run of ({experiment}) | " + " | ".join(columns).replace("_", " ") + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    return head + [
        f"| {name.removeprefix('claim-')} | " + " | ".join(f"{run[key]:.3g}" for key in columns) + " |"
        for name, run in runs.items()
    ]


def written_results() -> dict[str, dict[str, Any]]:
    """Return what the result files of all experiments hold that have run."""
    files = {name: RESULTS / f"claims-{name}.json" for name in EXPERIMENTS}
    return {name: json.loads(path.read_text("utf8")) for name, path in files.items() if path.exists()}


def main() -> int:
    """Run the experiments named, or all; write ``claims-X.json`` for each, and the page of all that ever ran."""
    wanted = sys.argv[1:] or list(EXPERIMENTS)
    unknown = [name for name in wanted if name not in EXPERIMENTS]
    if unknown:
        print(f"there is no experiment {unknown[0]!r}: take some of {' '.join(EXPERIMENTS)}", file=sys.stderr)
        return 2
    for name in wanted:
        write_results(f"claims-{name}", run_experiment(name))
        write_atomic(RESULTS / "claims_embedded.md", page(written_results()).encode())
    print(page(written_results()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
