"""The multi-turn categories of the Berkeley function-calling leaderboard."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("bfcl")(
    Suite(
        name="bfcl",
        version=1,
        description="The 800 multi-turn questions of BFCL, 200 in each of four categories.",
        entries=tuple(
            SuiteEntry("turngym/BFCL-v0", {"category": category}, episodes=200)
            for category in ("base", "miss_func", "miss_param", "long_context")
        ),
        metric="success",
        protocol=(
            "60 turns of one call each; the package allows 20 steps for each request. An episode counts if all "
            "requests pass the package's checks, and ends with the first that does not."
        ),
    )
)
