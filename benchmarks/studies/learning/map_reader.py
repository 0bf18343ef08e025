"""A world that nobody here wrote: the embedded model on TextWorld-Express's map reader.

Arms, written down before they ran: GiGPO with the defaults, seed 0; three rooms, no distractors, twelve turns; the goal
is told only once, so the prompt is the whole conversation; one JVM for each of eight slots in worker processes. The
first arm turned out to start near the top, so a second one, with a fifth of the demonstrations, was added.
"""

from __future__ import annotations

import sys

from run_queue import RESULTS, run_all, summary, with_settings_of_0_1_0, write_results

from turngym.trainers.report.curve import write_curves

PARAMS = "numLocations=3,maxDistanceApart=2,maxDistractorItemsPerLocation=0,includeDoors=0"
SEEDS = (0,)
TITLE = "TextWorld-Express map reader, 3 rooms"
SETTINGS = [
    *("--env", "turngym/TextWorldExpress-v0"),
    *("--env-options", "game=mapreader", f"params={PARAMS}", "max_turns=12"),
    *("--rollout.prompt.mode", "conversation", "--rollout.groups", "16", "--rollout.group-size", "8"),
    *("--rollout.num-envs", "8", "--rollout.backend", "process", "--rollout.max-new-tokens", "12"),
    *(
        "--warmup.demonstrations",
        "300",
        "--warmup.epochs",
        "10",
        "--warmup.batch-size",
        "8",
        "--embedded.vocabulary",
        "640",
    ),
    *("--max-seconds", "180", "--evaluation.every", "10", "--evaluation.curve-episodes", "60", "--no-control"),
]
SHORT = [
    "--warmup.demonstrations",
    "60",
    "--warmup.epochs",
    "6",
    "--max-seconds",
    "110",
    "--evaluation.episodes",
    "100",
]
ARMS = {f"textworld-seed{seed}": with_settings_of_0_1_0([*SETTINGS, "--seed", str(seed)]) for seed in SEEDS}
ARMS |= {
    f"textworld-short-seed{seed}": with_settings_of_0_1_0([*SETTINGS, *SHORT, "--seed", str(seed)]) for seed in SEEDS
}


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/map_reader.json`` and the picture."""
    folders = run_all(ARMS)
    runs = {name: summary(folder) for name, folder in folders.items()}
    write_results("map_reader", {"arms": ARMS, "runs": runs})
    write_curves({name: [folder] for name, folder in folders.items()}, RESULTS / "map_reader.png", TITLE)
    for name, run in runs.items():
        print(f"{name}: {run['headline']['sentence']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
