"""Faults planted in small programs, judged by hidden tests."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("code-repair")(
    Suite(
        name="code-repair",
        version=1,
        description="The faulty programs of the test split: 31 with one fault, 73 with two.",
        entries=(
            SuiteEntry("turngym/CodeRepair-v0", episodes=31),
            SuiteEntry("turngym/CodeRepairHard-v0", episodes=73),
        ),
        metric="success",
        protocol=(
            "Default options: 4 attempts at each program; success is that all hidden tests pass. Faults are those of "
            "the test split; training may show other faults of the same program. Programs run in a sandbox, which must "
            "be there. CodeWriting is left out: its test split holds 3 programs."
        ),
    )
)
