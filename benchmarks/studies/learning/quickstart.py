"""The quickstart for ten training seeds: before, after and control, paired on 300 held-out lakes.

Arms, written down before they ran: seeds 0 to 9 of the quickstart, one after another, because each run is two
processes itself (training and its control side by side). The only change is ``--max-seconds 0``: all 60 iterations are
run on a slow machine too, and the control gets the same time. Claim: the 95 % interval of trained less control in
sampled success lies above 0 for at least nine of the ten seeds.

What was tried before, on seed 0 and one run each (success after training and of the control, sampled; FrozenLake with
``view=coordinates``; "-" is not measured):

=====================================================================  ==========  =======
task and settings                                                      trained %   control %
=====================================================================  ==========  =======
Sokoban, 300 demonstrations, 300 s (the quickstart before, 3 seeds)    70.7        67.3
size 4, holes 0.2, 50 demonstrations 18 times, 22 iterations           61.0        46.0
  the same with 60 iterations, on 100 dev lakes                        58          -
  the same with learning rate 1e-3, on 100 dev lakes                   49          -
size 4, holes 0.1, 30 demonstrations 10 times, plain, 40 iterations    85.0        68.0
size 5, holes 0.1, 30 demonstrations 10 times, plain, on 100 dev lakes 51          -
size 6, holes 0.1, 50 demonstrations 10 times, on 100 dev lakes        25          -
=====================================================================  ==========  =======

More passes over the demonstrations make the policy certain of what it has learnt by heart: after 18 passes nine groups
of ten had equal returns, and reward taught nothing more. Larger lakes take more turns than a minute has.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from run_queue import RESULTS, mean_and_range, run_all, summary, write_results

from turngym.benchmarks.cli.options.quickstart import QUICKSTART

SEEDS = range(10)
ARMS = {f"quickstart-lake-seed{seed}": [*QUICKSTART, "--max-seconds", "0", "--seed", str(seed)] for seed in SEEDS}


def difference(run: dict[str, Any], mode: str) -> dict[str, Any]:
    """Return the paired difference of the trained policy from the control on the same instances."""
    found: dict[str, Any] = run["headline"]["modes"][mode]["after_minus_control"]["estimate"]
    return found


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/quickstart.json`` and a picture."""
    folders = run_all(ARMS, at_once=1)
    runs = {name: summary(folder) for name, folder in folders.items()}
    above = {mode: sum(difference(run, mode)["low"] > 0 for run in runs.values()) for mode in ("sampled", "greedy")}
    write_results("quickstart", {"arms": ARMS, "runs": runs, "intervals_above_0": above})
    shutil.copy(next(iter(folders.values())) / "curve.png", RESULTS / "quickstart.png")
    for who in ("warmup", "final", "control"):
        for how in ("sampled", "greedy"):
            values = [run["evaluations"][f"{who}-{how}"]["success"]["value"] for run in runs.values()]
            print(f"{who:8} {how:8} success % {mean_and_range(values)}")
    for name, run in runs.items():
        found = [difference(run, mode) for mode in above]
        print(
            name, *(f"{100 * each['value']:+.1f} [{100 * each['low']:.1f}, {100 * each['high']:.1f}]" for each in found)
        )
    print(f"intervals of trained less control above 0: {above}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
