"""Sokoban from 300 demonstrations for three training seeds: before, after and control, paired on 200 held-out rooms.

Arms, written down before they ran: seeds 0, 1, 2 of the default settings on Sokoban, one after another, because each
run uses two cores itself (training and its control side by side).
"""

from __future__ import annotations

import shutil
import sys

from run_queue import RESULTS, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results

ARMS = {
    f"quickstart-seed{seed}": with_settings_of_0_1_0(["--env", "turngym/Sokoban-v0", "--seed", str(seed)])
    for seed in (0, 1, 2)
}


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/sokoban.json`` and the pictures."""
    folders = run_all(ARMS, at_once=1)
    runs = {name: summary(folder) for name, folder in folders.items()}
    write_results("sokoban", {"arms": ARMS, "runs": runs})
    for name, folder in folders.items():
        shutil.copy(folder / "curve.png", RESULTS / f"{name}.png")
    for who in ("warmup", "final", "control"):
        for how in ("sampled", "greedy"):
            values = [run["evaluations"][f"{who}-{how}"]["success"]["value"] for run in runs.values()]
            print(f"{who:8} {how:8} success % {mean_and_range(values)}")
    for name, run in runs.items():
        print(f"{name}: {run['headline']['sentence']} {run['headline']['control_sentence']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
