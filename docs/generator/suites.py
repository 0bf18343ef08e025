"""Write the page of the suites: ``python docs/generator/suites.py [--check]``."""

from __future__ import annotations

import sys
from pathlib import Path

from families import families
from stale import stale

import turngym  # noqa: F401  (registers the environments)
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.storage.files import write_atomic

PAGE = Path(__file__).resolve().parents[1] / "reference" / "suites.md"
_INTRO = """# Suites

A suite is a versioned list of environments, options and seeds, with a metric and a protocol; its number is the mean of
the metric with equal weight for each line of its table. `turngym eval SUITE` plays it, `turngym list SUITE` prints what
is shown here, and `turngym leaderboard` ranks the results ([how](../start/leaderboard.md)). Write
[your own](../how-to/suite.md)."""


def section(suite: Suite) -> str:
    """Return the section of a suite."""
    rows = [f"| {_linked(entry)} | {entry.count} |" for entry in suite.entries]
    parts = [
        f"## {suite.name}",
        f"Version {suite.version}, metric `{suite.metric}`.",
        "\n".join(["| environment and options | episodes |", "| --- | --- |", *rows]),
        suite.protocol,
    ]
    return "\n\n".join(filter(None, parts))


def _linked(entry: SuiteEntry) -> str:
    """Return the environment of an entry with its options, as a link to its page."""
    pages = {env_id: family.slug for family in families() for env_id in family.playable()}
    return f"[`{entry.label}`](../environments/{pages[entry.env_id]}.md)"


def page() -> str:
    """Return the page."""
    rows = [f"| [{name}](#{name}) | {suite.description} |" for name, suite in SUITES.items()]
    table = "\n".join(["| suite | |", "| --- | --- |", *rows])
    return "\n\n".join([_INTRO, table, *(section(suite) for suite in SUITES.values())]) + "\n"


def main(words: list[str]) -> int:
    """Write the page; with ``--check`` compare instead."""
    if "--check" in words:
        return stale({PAGE: page()}, "docs/generator/suites.py")
    write_atomic(PAGE, page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
