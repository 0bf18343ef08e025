"""Rows of a suite, such as ``turngym-core``, ``alfworld`` or ``babyai``, for random play and the expert.

    turngym eval SUITE --agent random --baselines --out FOLDER
    python benchmarks/studies/checks/core_rows.py FOLDER [--sample]

Checks the folder as ``turngym verify`` does, baselines played again in full, or with ``--sample``, for worlds that take
long, only recomputed from their episodes; the file tells which. Writes
``benchmarks/results/SUITE.json``, for ``alfworld``, which has another result, ``alfworld-rows.json``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from turngym.benchmarks.evaluation.submission import load_submission
from turngym.benchmarks.machine import machine
from turngym.benchmarks.verification.verify import verify
from turngym.storage.files import write_json

RESULTS = Path(__file__).parents[2] / "results"
TAKEN = ("alfworld",)
"""Suites whose name another result has."""


def main(argv: Sequence[str]) -> int:
    """Check the folder and write the rows; 1 if it is rejected."""
    is_full = "--sample" not in argv
    folders = [argument for argument in argv if argument != "--sample"]
    if len(folders) != 1:
        print(__doc__)
        return 2
    found = verify(folders[0], baselines=is_full)
    submission = load_submission(Path(folders[0]))
    results, config = submission.results, submission.config
    if not found.is_accepted or results.get("baselines", {}).keys() != {"random", "expert"}:
        print(f"{folders[0]} is no sound evaluation with --baselines; see turngym verify {folders[0]}")
        return 1
    suite = results["suite"]
    started, finished = (datetime.fromisoformat(submission.metadata[name]) for name in ("started", "finished"))
    content = {
        "command": f"turngym eval {suite} --agent random --baselines --out FOLDER",
        "suite": suite,
        "baselines_played_again": is_full,
        "version": results["version"],
        "metric": results["metric"],
        "turns": {name: sum(row["length"] for row in rows) for name, rows in sorted(submission.baselines.items())},
        "seconds_with_both_baselines": (finished - started).total_seconds(),
        "machine": machine("turngym", "gymnasium", "numpy"),
        "environments": [
            {key: each[key] for key in ("label", "ruleset_hash", "seeds")} for each in config["environments"]
        ],
        "rows": results["baselines"],
    }
    write_json(RESULTS / (f"{suite}-rows.json" if suite in TAKEN else f"{suite}.json"), content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
