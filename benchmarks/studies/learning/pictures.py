"""The embedded model learns a grid world from its pictures alone: success on test instances before and after training.

    python benchmarks/studies/learning/pictures.py              # three seeds
    python benchmarks/studies/learning/pictures.py 0            # these
    python benchmarks/studies/learning/pictures.py --finished   # starts nothing, reports on finished runs

Two arms, one run at a time on one thread: FrozenLake on firm ice as pictures without text, and the same with every
picture blanked, which shows what can be learnt without seeing. Each is warmed up on 600 demonstrations and trained with
GiGPO for 4,000 environment turns. Turns bound the runs, so that other work on the machine does not change results.
Finished runs are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from run_queue import RESULTS, RUNS, is_finished, mean_and_range, run_all, summary, write_results
from verdicts import CHANGE, SEEDS, difference, in_points

from turngym.trainers.report.curve import write_curves

BLANK = "benchmarks/studies/learning/blank_pictures.py:BlankPictures"
TURNS = 4_000
SETTINGS = (
    *("--preset", "quickstart", "--no-control", "--env", "turngym/FrozenLake-v0", "--env-options", "image=True"),
    *("--rollout.prompt.pictures-only", "--embedded.vision", "--rollout.groups", "16"),
    *("--warmup.demonstrations", "600", "--warmup.epochs", "6", "--warmup.batch-size", "16"),
    *("--warmup.learning-rate", "0.001", "--max-seconds", "0", "--max-environment-turns", str(TURNS)),
    *("--evaluation.every", "5"),
)
ARMS: Mapping[str, Sequence[str]] = {"pictures": (), "blank pictures": ("--wrapper", BLANK)}


def run_name(arm: str, seed: int) -> str:
    """Return the name of a run's folder.

    >>> run_name("blank pictures", 0)
    'frozenlake-blank-pictures-seed0'
    """
    return f"frozenlake-{arm.replace(' ', '-')}-seed{seed}"


def runs(seeds: Sequence[int]) -> dict[str, Sequence[str]]:
    """Return the name of each run with its options."""
    return {
        run_name(arm, seed): (*SETTINGS, *more, "--seed", str(seed)) for seed in seeds for arm, more in ARMS.items()
    }


def successes(found: Mapping[str, Any], arm: str, evaluation: str) -> list[float]:
    """Return the success rate of an evaluation in each run of an arm."""
    names = [run_name(arm, seed) for seed in SEEDS]
    return [float(found[name]["evaluations"][evaluation]["success"]["value"]) for name in names if name in found]


def verdicts_of(values: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Return what training changes, and what seeing changes, where all seeds have been run."""
    seeing, blind = (values[arm] for arm in ARMS)
    if not len(seeing["final-sampled"]) == len(blind["final-sampled"]) == len(SEEDS):
        return {}
    return {
        "training": difference(seeing["final-sampled"], seeing["warmup-sampled"], CHANGE),
        "seeing": difference(seeing["final-sampled"], blind["final-sampled"]),
    }


def main(words: Sequence[str]) -> int:
    """Run what is missing, print the table, write ``benchmarks/results/pictures.json`` and the picture."""
    if list(words) == ["--finished"]:
        arms = {name: options for name, options in runs(SEEDS).items() if is_finished(RUNS / name)}
        folders = {name: RUNS / name for name in arms}
    else:
        arms = runs(tuple(map(int, words)) or SEEDS)
        folders = run_all(arms, at_once=1)
    found = {name: summary(folder) for name, folder in folders.items()}
    ways = ("warmup-sampled", "final-sampled", "warmup-greedy", "final-greedy")
    values = {arm: {way: successes(found, arm, way) for way in ways} for arm in ARMS}
    verdicts = verdicts_of(values)
    write_results("pictures", {"arms": arms, "runs": found, "success": values, "verdicts": verdicts})
    named = {arm: [folders[run_name(arm, seed)] for seed in SEEDS if run_name(arm, seed) in folders] for arm in ARMS}
    curves = {arm: some for arm, some in named.items() if some}
    write_curves(curves, RESULTS / "pictures.png", "FrozenLake from pictures alone")
    for arm, rates in values.items():
        print(arm, *(f"{way} {mean_and_range(rate)}" for way, rate in rates.items() if rate), sep=" | ")
    for name, verdict in verdicts.items():
        print(name, in_points(verdict), verdict["verdict"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
