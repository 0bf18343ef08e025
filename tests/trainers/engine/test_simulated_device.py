"""Models on another device than the CPU, in a separate process: autograd needs the device before its threads start."""

from pathlib import Path

import pytest
import warm

CASES = Path(__file__).with_name("simulated_device_cases.py")


@pytest.mark.parametrize("which", ["not integration", pytest.param("integration", marks=pytest.mark.integration)])
def test_it_equals_the_cpu(which: str) -> None:
    quiet = "ignore::pytest.PytestAssertRewriteWarning"  # some plug-ins of pytest are imported already
    words = ("-q", "-n", "0", "-p", "no:cacheprovider", "-W", quiet, "-m", which, str(CASES))
    done = warm.run("-m", "pytest", *words, timeout=1800, modules=warm.HEAVY)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout and " skipped" not in done.stdout
