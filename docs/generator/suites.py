"""Write the page of the suites: ``python docs/generator/suites.py [--check]``."""

from __future__ import annotations

import sys
from pathlib import Path

from stale import stale

from turngym.benchmarks.suites import SUITES, Suite
from turngym.storage.files import write_atomic

PAGE = Path(__file__).resolve().parents[1] / "reference" / "suites.md"
_INTRO = """# Suites

A suite is a versioned list of environments, options and seeds, with a metric and a protocol; its number is the mean of
the metric with equal weight for each line of its table. `turngym eval SUITE` plays it, `turngym list SUITE` prints what
is shown here, and `turngym leaderboard` ranks the results ([how](../start/leaderboard.md)). Write
[your own](../how-to/suite.md)."""


def section(suite: Suite) -> str:
    """Return the section of a suite."""
    rows = [f"| `{entry.label}` | {entry.count} |" for entry in suite.entries]
    parts = [
        f"## {suite.name}",
        f"{suite.description} Version {suite.version}, metric `{suite.metric}`.",
        "\n".join(["| environment and options | episodes |", "| --- | --- |", *rows]),
        suite.protocol,
    ]
    return "\n\n".join(filter(None, parts))


def page() -> str:
    """Return the page."""
    return "\n\n".join([_INTRO, *(section(suite) for suite in SUITES.values())]) + "\n"


def main(words: list[str]) -> int:
    """Write the page; with ``--check`` compare instead."""
    if "--check" in words:
        return stale({PAGE: page()}, "docs/generator/suites.py")
    write_atomic(PAGE, page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
