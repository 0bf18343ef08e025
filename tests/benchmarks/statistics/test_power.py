"""Power and p-values of paired comparisons, against published tables and simulated studies."""

from statistics import fmean

import numpy as np
import pytest

from turngym.benchmarks.statistics.power import (
    Interval,
    critical_t,
    interval,
    power,
    seeds_needed,
    student_tail,
    verdict,
)
from turngym.benchmarks.statistics.several_tests import holm, p_value


@pytest.mark.parametrize(
    ("effect", "seeds"), [(0.2, 265), (0.5, 44), (0.8, 19), (1.5, 7)], ids=lambda value: str(value)
)
def test_seeds_for_90_percent_power_are_those_of_published_tables(effect: float, seeds: int) -> None:
    assert seeds_needed(effect, 1.0) == seeds
    assert power(effect, 1.0, seeds) >= 0.9 > power(effect, 1.0, seeds - 1)


def test_power_is_the_share_of_simulated_studies_that_exclude_0() -> None:
    draws = np.random.default_rng(0).normal(0.6, 1.0, size=(2000, 20))
    found = [interval(row).low > 0 or interval(row).high < 0 for row in draws.tolist()]
    assert fmean(found) == pytest.approx(power(0.6, 1.0, 20), abs=0.03)
    assert power(0.0, 1.0, 20) == pytest.approx(0.05, abs=1e-3)


def test_critical_values_are_those_of_students_t() -> None:
    table = ((1, 12.7062), (2, 4.3027), (3, 3.1824), (7, 2.3646), (19, 2.0930), (59, 2.0010), (1000, 1.9623))
    for degrees, t in table:
        assert critical_t(degrees) == pytest.approx(t, abs=1e-4)
        assert student_tail(t, degrees) == pytest.approx(0.025, abs=5e-6)


def test_power_of_two_pairs_is_that_of_simulated_ones() -> None:
    draws = np.random.default_rng(0).normal(2.0, 0.5, size=(4000, 2)).tolist()
    found = [interval(row).low > 0 or interval(row).high < 0 for row in draws]
    assert fmean(found) == pytest.approx(power(2.0, 0.5, 2), abs=0.02)


def test_verdicts_need_the_whole_interval() -> None:
    assert verdict(Interval(0.06, 0.01, 0.11), 0.05) == "holds"
    assert verdict(Interval(-0.1, -0.2, -0.01), 0.05) == "does not hold"
    assert verdict(Interval(0.01, -0.02, 0.04), 0.05) == "does not hold"
    assert verdict(Interval(0.04, -0.02, 0.1), 0.05) == "undecided"
    assert verdict(Interval(0.1, 0.1, 0.1), 0.05) == "undecided", "no spread was seen"


def test_p_values_are_corrected_for_their_number() -> None:
    assert p_value(Interval(0.1, 0.0, 0.2), 20) == pytest.approx(0.05, abs=1e-6), "an interval of 95 % that ends at 0"
    assert holm([0.01, 0.04]) == [0.02, 0.04] and holm([]) == []
    assert p_value(Interval(0.1, 0.1, 0.1), 20) == 0.0 and p_value(Interval(0.0, 0.0, 0.0), 20) == 1.0
