"""Rules, instances and the expert's play are the same to the byte on every supported Python and numpy.

`python tests/support/rule_hashes.py` records the hashes anew, which change only with rules, options or texts.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from rule_hashes import FILE, compensated_sum

from turngym.arithmetic import float_sum
from turngym.envs.registration import games, specs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="sums of this Python"),
        pytest.param(("--compensated",), id="sums of Python 3.12", marks=pytest.mark.integration),
    ],
)
def test_every_id_has_the_hash_that_was_recorded(words: tuple[str, ...]) -> None:
    """In a process of its own: tables that the rules keep are computed with its sums, and not kept for other tests."""
    script = ROOT / "tests" / "support" / "rule_hashes.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment.pop("ALFWORLD_DATA", None)  # games of the user's
    done = subprocess.run(
        [sys.executable, str(script), "--check", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["differing"] == {"rules": [], "expert": []}, f"record them with python {script.relative_to(ROOT)}"
    assert not found["float_sums"], "add floats with turngym.arithmetic.float_sum"
    assert found["counts"]["rules"] > 90 and found["counts"]["expert"] > 50


def test_the_recorded_ids_exist() -> None:
    recorded = json.loads(FILE.read_text("utf8"))
    assert set(recorded["rules"]) <= {*specs(), *games()} and set(recorded["expert"]) <= set(specs())


def test_the_emulated_sum_rounds_as_python_3_12_does() -> None:
    generator = random.Random(0)
    for _ in range(200):
        values = [generator.choice([generator.gauss(0, 1) * 10 ** generator.randrange(9), 3, True]) for _ in range(20)]
        expected = sum(values) if sys.version_info >= (3, 12) else compensated_sum(values)
        assert compensated_sum(values) == expected
    assert compensated_sum([0.1] * 10) == 1.0 and compensated_sum([1e100, 1.0, -1e100]) == 1.0
    assert compensated_sum([]) == 0 and compensated_sum([2, 3]) == 5


def test_our_sum_of_floats_rounds_after_each() -> None:
    assert float_sum([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 != 1.0
    assert float_sum([1e100, 1.0, -1e100]) == 0.0 and float_sum([2, 3]) == 5
