"""Games without given rules that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("rules")(
    Suite(
        name="rules",
        version=1,
        description="100 games of four levels whose rules and goal are not given, and 100 of five levels.",
        entries=(SuiteEntry("turngym/Rules-v0", episodes=100), SuiteEntry("turngym/RulesHard-v0", episodes=100)),
        metric="score",
        protocol=(
            "Default options: 160 turns, 240 of the hard ones. Games are those of the test split. The score counts "
            "solved levels, later ones more, by the actions that they took against the fewest."
        ),
    )
)
