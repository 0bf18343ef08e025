"""Crafter in words: the share of its achievements that are reached in an episode."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("crafter")(
    Suite(
        name="crafter",
        version=1,
        description="20 worlds of Crafter in words, scored by the share of the 22 achievements.",
        entries=(SuiteEntry("turngym/Crafter-v0", {}, episodes=20),),
        metric="score",
        protocol=(
            "Default options, 10,000 turns, one attempt at each world of the test split. The score of an episode is "
            "the share of achievements that it reached at least once; how often each was reached is reported too."
        ),
    )
)
