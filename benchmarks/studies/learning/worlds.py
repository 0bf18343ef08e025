"""The embedded model in the worlds that papers report on: success on test instances before and after training.

    python benchmarks/studies/learning/worlds.py                    # every world
    python benchmarks/studies/learning/worlds.py household webshop  # these

Arms, written down before they ran, in :mod:`world_arms` and :mod:`world_arms_later`. For each world and seed the
embedded model imitates the expert until sampled play succeeds on a share of the dev instances that is named there, or
for all the epochs that are named there; every arm goes on from there. One torch thread, three seeds and two runs at a
time; finished runs are kept, broken-off ones go on. Before and after are success rates on the same test instances. An
arm improves if the 95 % interval of after less before of sampled play over the seeds (paired by seed, Student's t) lies
above 0, it does not if it lies below 0, and is undecided otherwise. ALFWorld's games are found by ALFWORLD_DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from run_queue import RESULTS, ROOT, RUNS, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results
from verdicts import CHANGE, SEEDS, difference, in_points
from warmups import folder_of, warm_up_all
from world_arms import COMMON, FIRST, World
from world_arms_later import SECOND

from turngym.errors import MissingExtra
from turngym.storage.files import write_atomic
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import write_curves

WORLDS: Mapping[str, World] = {**FIRST, **SECOND}
"""World -> what is trained in it."""


def slug(arm: str) -> str:
    """Return the name of an arm as a part of a folder's name.

    >>> slug("gigpo, step rewards")
    'gigpo-step-rewards'
    """
    return arm.replace(",", "").replace(" ", "-")


def warmups(name: str) -> dict[str, list[str]]:
    """Return the name of the warm-up of each seed with its options."""
    return {f"world-{name}-warmup-seed{seed}": [*_settings(name), "--seed", str(seed)] for seed in SEEDS}


def _settings(name: str) -> list[str]:
    world = WORLDS[name]
    return [*COMMON, "--max-seconds", str(world.seconds), *world.settings]


def arms(name: str) -> dict[str, list[str]]:
    """Return the name of every run of a world with its options."""
    world = WORLDS[name]
    found = {}
    for seed in SEEDS:
        model = folder_of(f"world-{name}-warmup-seed{seed}").relative_to(ROOT)  # where runs are started
        for arm, own in world.arms.items():
            limits = ("--max-environment-turns", str(world.turns), "--evaluation.every", "5", "--seed", str(seed))
            found[run_name(name, arm, seed)] = [
                *_settings(name),
                "--model",
                str(model),
                *limits,
                *(with_settings_of_0_1_0(own) if world.as_in_0_1_0 else own),
            ]
    return found


def run_name(name: str, arm: str, seed: int) -> str:
    """Return the folder of a run."""
    return f"world-{name}-{slug(arm)}-seed{seed}"


def run_world(name: str) -> dict[str, Any]:
    """Run what is missing of a world; draw its curves and return its figures."""
    world = WORLDS[name]
    imitated = warm_up_all(warmups(name), world.enough, lessons=world.lessons)
    folders = run_all(arms(name))
    runs = {run: summary(folder) for run, folder in folders.items()}
    by_arm = {arm: [folders[run_name(name, arm, seed)] for seed in SEEDS] for arm in world.arms}
    write_curves(by_arm, RESULTS / f"worlds-{name}.png", world.title)
    before, after = (
        {arm: _success(name, arm, runs, f"{stage}-sampled") for arm in world.arms} for stage in ("warmup", "final")
    )
    return {
        "command": f"python benchmarks/studies/learning/worlds.py {name}",
        "warmups": imitated,
        "arms": arms(name),
        "before": before,
        "after": after,
        "change": {arm: difference(after[arm], before[arm], CHANGE) for arm in world.arms},
        "dev": {run: _dev_success(folder) for run, folder in folders.items()},
        "claims": {f"{first} > {second}": difference(after[first], after[second]) for first, second in world.claims},
        "runs": runs,
    }


def _dev_success(folder: Path) -> list[float]:
    """Return the success of sampled play on dev instances along a run."""
    return [record["eval/success"] for record in RunFolder(folder).metrics() if "eval/success" in record]


def _success(name: str, arm: str, runs: Mapping[str, Any], evaluation: str) -> list[float]:
    """Return the success on test instances in one evaluation of an arm's runs, a value a seed."""
    mine = [runs[run_name(name, arm, seed)]["evaluations"] for seed in SEEDS]
    return [each[evaluation]["success"]["value"] for each in mine]


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return Markdown tables: success of every arm before and after, and the comparisons of arms."""
    lines = [
        "Success on test instances, mean of three seeds (smallest to largest); the change is that of sampled play.",
        "",
        "| arm | after warm-up, % | after training, % | change, points [95 %] | | greedy before | greedy after |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        for arm, change in result["change"].items():
            before, after = mean_and_range(result["before"][arm]), mean_and_range(result["after"][arm])
            greedy = [
                mean_and_range(_success(name, arm, result["runs"], f"{stage}-greedy")) for stage in ("warmup", "final")
            ]
            figures = f"{before} | {after} | {in_points(change)} | {change['verdict']} | {' | '.join(greedy)}"
            lines.append(f"| {name}: {arm} | {figures} |")
    lines += ["", "| comparison | difference after training, points [95 %] | verdict |", "|---|---|---|"]
    for name, result in results.items():
        for claim, found in result["claims"].items():
            lines.append(f"| {name}: {claim} | {in_points(found)} | {found['verdict']} |")
    return "\n".join(lines) + "\n"


def written_results() -> dict[str, dict[str, Any]]:
    """Return what the result files of all worlds hold that have run."""
    files = {name: RESULTS / f"worlds-{name}.json" for name in WORLDS}
    return {name: json.loads(path.read_text("utf8")) for name, path in files.items() if path.exists()}


def main() -> int:
    """Run the worlds named, or all; write ``worlds-X.json`` for each and ``worlds.md`` for all that ever ran."""
    wanted = sys.argv[1:] or list(WORLDS)
    unknown = [name for name in wanted if name not in WORLDS]
    if unknown:
        print(f"there is no world {unknown[0]!r}: take some of {' '.join(WORLDS)}", file=sys.stderr)
        return 2
    broken = []
    for name in wanted:
        try:
            write_results(f"worlds-{name}", run_world(name))
        except (subprocess.CalledProcessError, MissingExtra) as error:  # the other worlds run all the same
            broken.append(name)
            print(f"a run of {name} failed: {error}; see the log beside its folder in {RUNS}", file=sys.stderr)
        write_atomic(RESULTS / "worlds.md", page(written_results()).encode())
    print(page(written_results()))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
