"""Intervals: against formulas, simulation, and the mistake of treating dependent episodes as independent."""

import numpy as np
import pytest

from turngym.agents.intervals import cluster_bootstrap, paired_difference, share_difference, wilson


def test_bootstrap_error_of_independent_episodes_is_the_standard_error() -> None:
    values = np.random.default_rng(0).random(500) < 0.3
    found = cluster_bootstrap(values.astype(float).tolist(), range(500))
    assert found.value == pytest.approx(values.mean())
    assert found.stderr == pytest.approx(np.sqrt(values.mean() * (1 - values.mean()) / 500), rel=0.1)
    assert found.low == pytest.approx(values.mean() - 1.96 * found.stderr, abs=0.01)


def test_copies_of_a_block_add_no_certainty() -> None:
    values = (np.random.default_rng(1).random(50) < 0.5).astype(float)
    once = cluster_bootstrap(values.tolist(), range(50))
    copied = cluster_bootstrap(np.repeat(values, 8).tolist(), np.repeat(np.arange(50), 8).tolist())
    assert copied.stderr == pytest.approx(once.stderr, rel=0.05)
    naive = cluster_bootstrap(np.repeat(values, 8).tolist(), range(400))
    assert naive.stderr < 0.5 * once.stderr, "drawing episodes instead of blocks would look far too certain"


def test_blocks_of_different_size_weigh_by_their_episodes() -> None:
    assert cluster_bootstrap([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"]).value == 0.75


def test_coverage_of_the_interval() -> None:
    rng, hits = np.random.default_rng(2), 0
    for trial in range(200):
        values = (rng.random(100) < 0.4).astype(float).tolist()
        found = cluster_bootstrap(values, range(100), seed=trial)
        hits += found.low <= 0.4 <= found.high
    assert 178 <= hits <= 200


def test_pairing_removes_what_both_sides_share() -> None:
    rng = np.random.default_rng(3)
    difficulty = rng.random(200)
    before, after = (difficulty > 0.5).astype(float), (difficulty > 0.4).astype(float)
    found = paired_difference(after.tolist(), before.tolist())
    assert found.value == pytest.approx((after - before).mean())
    assert 0 < found.low < found.value < found.high < 0.2


def test_wilson_known_value_and_ends() -> None:
    # p = 15/50: centre (0.3 + 1.9208/50)/(1 + 3.8415/50) = 0.31427, half width 0.12331
    assert wilson(15, 50) == pytest.approx((0.19096, 0.43758), abs=1e-4)
    assert wilson(0, 10)[0] == pytest.approx(0, abs=1e-12)
    assert wilson(10, 10)[1] == pytest.approx(1)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="there must be one at least, got 0 and 0"):
        cluster_bootstrap([], [])
    with pytest.raises(ValueError, match="got 2 and 1"):
        cluster_bootstrap([1.0, 2.0], [0])
    with pytest.raises(ValueError, match="same episodes on both sides, got 1 and 2"):
        paired_difference([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="got 3 of 2"):
        wilson(3, 2)


def test_equal_values_have_no_interval() -> None:
    """All of 40 scores were 0.5, which was shown as 0.5 to 0.5."""
    found = cluster_bootstrap([0.5] * 40, range(40))
    assert found.value == 0.5 and found.no_interval == "no spread" and not found.has_interval
    rounded = cluster_bootstrap([0.1 + 0.2, 0.3] * 20, range(40))
    assert rounded.no_interval == "no spread", "rounding is not a spread"
    assert cluster_bootstrap([0.5] * 39 + [0.6], range(40)).has_interval
    assert cluster_bootstrap([0.5, 0.6], range(2)).no_interval == "too few"


def test_equal_differences_of_shares_leave_a_share_of_others_open() -> None:
    found = share_difference([1.0] * 40, [0.0] * 40)
    assert found.has_interval and found.high == 1.0 and found.low == pytest.approx(wilson(40, 40)[0])
    assert share_difference([1.0, 0.0] * 20, [0.0] * 40) == paired_difference([1.0, 0.0] * 20, [0.0] * 40)
