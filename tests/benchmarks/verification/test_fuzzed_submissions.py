"""Mutated submissions and tournaments are answered, whatever was changed in them."""

from turngym.benchmarks.studies.checks.fuzz_submissions import fuzz


def test_mutated_folders_are_answered_and_never_raised() -> None:
    found = fuzz(300, seed=7)
    assert found["checked"] == 300 and found["exceptions"] == []
    assert found["labels"]["rejected"] > 200
    assert found["processor_seconds"]["slowest"] < 20
