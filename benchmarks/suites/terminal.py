"""Tasks in a shell of every family, at three levels."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.tools.terminal.families import FAMILIES

SUITES.register("terminal")(
    Suite(
        name="terminal",
        version=1,
        description="20 tasks in a shell of each of eleven families, and 50 episodes with two large ones.",
        entries=(
            *(SuiteEntry("turngym/Terminal-v0", {"family": family}, episodes=20) for family in FAMILIES),
            SuiteEntry("turngym/TerminalHard-v0", episodes=50),
        ),
        metric="success",
        protocol=(
            "Default options: 20 turns, 40 with two tasks, of 10 seconds each; one attempt at each task. Tasks are "
            "those of the test split. Commands run in Bubblewrap, which must be there, on the programs of the machine."
        ),
    )
)
