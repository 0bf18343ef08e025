"""Generated conversations through a real gateway; ``benchmarks/studies/checks/gateway.py`` plays 1,000 of them."""

import warnings

import pytest

from turngym.benchmarks.studies.checks.gateway import TEMPLATES, pairs, play
from turngym.errors import PromptWarning


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_trained_is_what_was_sampled(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PromptWarning)  # a template without a role for the system
        found = play(5, TEMPLATES[name], seed=11)
    for first, second, what in pairs(found["counts"]):
        assert first == second, what
    assert max(found["gaps"].values()) < 1e-4
    counts = found["counts"]
    assert counts["trained tokens"] > 100 and counts["expected extended"] > 3
