"""Claims of papers, tested in the laboratory: tiny policies over small worlds, so many seeds that a test has power.

    python benchmarks/studies/learning/laboratory.py list
    python benchmarks/studies/learning/laboratory.py run a b    # these; without a letter, all
    python benchmarks/studies/learning/laboratory.py page       # the page and its curves, from what has run

``run`` goes on where it was stopped, at low priority, ``--at-once`` runs side by side. Each experiment has a pilot on
seeds of its own, which sets step sizes and the number of seeds; the plan is written down, the main runs follow, and
their comparison is made once, after the last of them. ``lab/`` holds the code, ``lab/experiments/`` the arms, and
``benchmarks/results/claims/`` every run.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from lab.experiments import EXPERIMENTS
from lab.ledger import RESULTS
from lab.page import state_of, write_page
from lab.planning import run_experiment

from turngym.benchmarks.studies.harness import arguments


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says."""
    parser = arguments(__doc__)
    parser.add_argument("command", choices=["list", "run", "page"])
    parser.add_argument("experiments", nargs="*", metavar="LETTER")
    parser.add_argument("--at-once", type=int, default=2, help="runs side by side")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where runs are kept")
    given = parser.parse_intermixed_args(argv)
    unknown = [name for name in given.experiments if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]!r}: take some of {' '.join(EXPERIMENTS)}")
    chosen = [EXPERIMENTS[name] for name in given.experiments or EXPERIMENTS]
    if given.command == "list":
        for experiment in chosen:
            print(f"{experiment.name}  {state_of(experiment, given.folder)}  {experiment.claim}")
        return 0
    if given.command == "run":
        if hasattr(os, "nice"):
            os.nice(max(15 - os.nice(0), 0))
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # workers end with this process
        for experiment in chosen:
            found = run_experiment(experiment, given.at_once, given.folder)
            for row in found["contrasts"]:
                print(f"{experiment.name} {row['contrast']} at {row['level']}: {row['verdict']}", flush=True)
            write_page(given.folder)
        return 0
    write_page(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
