"""Processor seconds that commands take before they do anything, here and at an earlier commit.

    python benchmarks/studies/speed/startup.py --before b24e0dd

writes ``benchmarks/results/startup.json``: user and system seconds of the process and its children, the smallest of
some repeats, since other work on the machine only ever adds to them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from turngym.benchmarks.studies.harness import ROOT, arguments, write_result

COMMANDS = ("--version", "--help", "list", "list algorithms", "train --help", "eval --help", "play --help")


def processor_seconds(command: str, checkout: Path) -> float:
    """Return what one command takes from a checkout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "turngym", *command.split()],
        check=True,
        capture_output=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(checkout: Path, repeats: int) -> dict[str, float]:
    """Return command -> processor seconds, after one run that fills the caches of bytecode."""
    found = {}
    for command in COMMANDS:
        processor_seconds(command, checkout)
        found[command] = round(min(processor_seconds(command, checkout) for _ in range(repeats)), 3)
    return found


def main() -> None:
    """Measure both and write the result."""
    parser = arguments(__doc__, "startup.json", repeats=3)
    parser.add_argument("--before", required=True, help="commit to compare with")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(earlier), given.before], check=True, capture_output=True)
        try:
            before = measured(earlier, given.repeats)
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    after = measured(ROOT, given.repeats)
    table = {command: {"before": before[command], "after": after[command]} for command in COMMANDS}
    write_result(given.out, {"unit": "processor seconds", "before": given.before, "runs": table})
    for command, row in table.items():
        print(f"turngym {command:16} {row['before']:6.2f} s -> {row['after']:5.2f} s")


if __name__ == "__main__":
    main()
