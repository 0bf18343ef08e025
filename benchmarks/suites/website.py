"""Goals on three web sites that training never asks for."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("website")(
    Suite(
        name="website",
        version=2,
        description="100 goals of the test split on each of three sites: an issue tracker, a mailbox, a back office.",
        entries=tuple(SuiteEntry(f"turngym/WebSite{site}-v0", episodes=100) for site in ("Issues", "Mail", "Shop")),
        metric="success",
        protocol=(
            "Default options, text mode, 40 turns, one attempt at each goal. Success needs all that is asked for and "
            "no other change. Goals are those of the test split; all splits meet the same contents of the sites."
        ),
    )
)
