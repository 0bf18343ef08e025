"""Databases that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("sql")(
    Suite(
        name="sql",
        version=1,
        description="200 questions and changes on generated databases, and 100 harder ones with misleading names.",
        entries=(SuiteEntry("turngym/Sql-v0", episodes=200), SuiteEntry("turngym/SqlHard-v0", episodes=100)),
        metric="success",
        protocol=(
            "Default options: 20 turns, one submission. Requests are those of the test split. Queries and changes are "
            "judged on at least six databases, of which all but one are never shown."
        ),
    )
)
