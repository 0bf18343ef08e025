"""A suite with a game of this package and one of turngym."""

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("sample-suite")(
    Suite(
        name="sample-suite",
        version=1,
        description="Doors, and a game of turngym.",
        entries=(
            SuiteEntry("sample/Doors-v0", episodes=4),
            SuiteEntry("sample/MisereSeat-v0", episodes=2),
            SuiteEntry("turngym/GuessTheNumber-v0", {"high": 10}, episodes=3, wrappers=("sample_loud",)),
        ),
    )
)
