"""Things to find and requests to clear up that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("ask")(
    Suite(
        name="ask",
        version=1,
        description="100 things to find among 100, 100 among 200 with few questions, and 100 requests to clear up.",
        entries=(
            SuiteEntry("turngym/Ask-v0", episodes=100),
            SuiteEntry("turngym/AskHard-v0", episodes=100),
            SuiteEntry("turngym/AskIntent-v0", episodes=100),
        ),
        metric="success",
        protocol=(
            "Default options: 20 questions and a guess, 8 questions and a guess for the hard ones. Tables and requests "
            "are those of the test split. A guess ends an episode; questions do not lower success."
        ),
    )
)
