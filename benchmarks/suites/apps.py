"""Errands in apps that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("apps")(
    Suite(
        name="apps",
        version=1,
        description="100 requests of two errands in somebody's apps, and 100 of three with functions of drawn names.",
        entries=(SuiteEntry("turngym/Apps-v0", episodes=100), SuiteEntry("turngym/AppsHard-v0", episodes=100)),
        metric="success",
        protocol=(
            "Default options: 80 turns, 120 of the hard ones. Requests are those of the test split. An "
            "episode counts if every record that had to change has changed as asked, and no other one has."
        ),
    )
)
