"""Number of generated inputs of a test: ``FUZZ_COUNT=100000 python -m pytest tests/envs/test_fuzzed_actions.py``."""

import os


def fuzz_count(default: int) -> int:
    return int(os.environ.get("FUZZ_COUNT", default))
