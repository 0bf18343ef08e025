"""Generated repositories with something wrong, of every kind, at three levels."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.tools.repo.defects import KINDS

SUITES.register("repo")(
    Suite(
        name="repo",
        version=1,
        description="20 repositories of each of five kinds, 50 with one fault, and 50 large ones.",
        entries=(
            *(SuiteEntry("turngym/Repo-v0", {"kind": kind}, episodes=20) for kind in KINDS),
            SuiteEntry("turngym/RepoEasy-v0", episodes=50),
            SuiteEntry("turngym/RepoHard-v0", episodes=50),
        ),
        metric="success",
        protocol=(
            "Default options: 30 turns, 60 with large ones, of 10 seconds each; one attempt at each task. Tasks are "
            "those of the test split. Commands run in Bubblewrap, which must be there, on the programs of the machine."
        ),
    )
)
