"""Models on another device than the CPU, in a separate process: autograd needs the device before its threads start."""

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("simulated_device_cases.py")


@pytest.mark.parametrize("which", ["not integration", pytest.param("integration", marks=pytest.mark.integration)])
def test_it_equals_the_cpu(which: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", which, str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout and " skipped" not in done.stdout
