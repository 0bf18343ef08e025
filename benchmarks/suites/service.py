"""Callers of service desks that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("service")(
    Suite(
        name="service",
        version=1,
        description="100 callers of a shop, 100 of a clinic, and 50 with several wishes whose acts are hidden.",
        entries=(
            SuiteEntry("turngym/Service-v0", episodes=100),
            SuiteEntry("turngym/ServiceClinic-v0", episodes=100),
            SuiteEntry("turngym/ServiceHard-v0", episodes=50),
        ),
        metric="success",
        protocol=(
            "Default options: 50 turns, 80 of the hard callers; one attempt at each. Callers and policies are those of "
            "the test split. The caller is scripted, so that none of its errors counts against the agent."
        ),
    )
)
