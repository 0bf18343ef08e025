"""Households that training never shows, at three sizes."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.household.world import KINDS

SUITES.register("household")(
    Suite(
        name="household",
        version=1,
        description="50 generated households for each of six kinds of task, and 100 large ones with two tasks each.",
        entries=(
            *(SuiteEntry("turngym/Household-v0", {"kind": kind}, episodes=50) for kind in KINDS),
            SuiteEntry("turngym/HouseholdHard-v0", episodes=100),
        ),
        metric="success",
        protocol=(
            "Default options: 50 turns, 100 in the large households; one attempt at each task. Households are those of "
            "the test split. The expert explores with what an agent can know."
        ),
    )
)
