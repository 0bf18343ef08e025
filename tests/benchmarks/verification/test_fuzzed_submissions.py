"""Mutated submissions and tournaments are answered, whatever was changed in them."""

from fuzzing import fuzz_count
from mutated_folders import fuzz


def test_mutated_folders_are_answered_and_never_raised() -> None:
    count = fuzz_count(100)
    found = fuzz(count, seed=7)
    assert found["checked"] == count and found["exceptions"] == []
    assert found["labels"]["rejected"] > 2 * count // 3
    assert found["processor_seconds"]["slowest"] < 20
