"""Measures of exploration and regret curves, recomputed the slow way, and the lower bound that no learner beats."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from turngym.envs.textgames.bandit.metrics import (
    bernoulli_divergence,
    expected_regret,
    fit_regret_curve,
    greedy_fraction,
    has_suffix_failure,
    lai_robbins_slope,
    minimal_fraction,
    optimal_fraction,
)
from turngym.envs.textgames.bandit.players import ucb
from turngym.errors import ConfigError
from turngym.seeding import stream

pulls = st.lists(st.integers(0, 2), min_size=2, max_size=30)


@given(pulls)
def test_shares_equal_counts_by_hand(arms: list[int]) -> None:
    means = [0.1, 0.7, 0.7]
    regret = expected_regret(means, arms)
    assert regret.shape == (len(arms),) and regret[-1] == pytest.approx(0.6 * arms.count(0))
    assert (np.diff(regret) >= 0).all()
    assert optimal_fraction(means, arms) == pytest.approx(1 - arms.count(0) / len(arms))
    assert minimal_fraction(3, arms) == pytest.approx(3 * min(arms.count(arm) for arm in range(3)) / len(arms))
    assert has_suffix_failure(means, arms) == (set(arms[len(arms) // 2 :]) == {0})


def test_minimal_fraction_is_one_only_if_all_arms_are_pulled_equally_often() -> None:
    for arms in product(range(3), repeat=6):
        assert (minimal_fraction(3, arms) == 1.0) == (sorted(arms) == [0, 0, 1, 1, 2, 2])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=20))
def test_greedy_fraction_equals_that_of_means_taken_anew_each_turn(history: list[tuple[int, int]]) -> None:
    hits = 0
    for turn in range(1, len(history)):
        means: dict[int, float] = {}
        for arm in range(3):
            seen = [reward for pulled, reward in history[:turn] if pulled == arm]
            if seen:
                means[arm] = sum(seen) / len(seen)
        hits += means.get(history[turn][0], -1) == max(means.values())
    arms, rewards = [arm for arm, _ in history], [float(reward) for _, reward in history]
    assert greedy_fraction(3, arms, rewards) == pytest.approx(hits / (len(history) - 1))


@pytest.mark.parametrize("share", [optimal_fraction, has_suffix_failure])
def test_a_share_of_no_pulls_is_refused(share: object) -> None:
    assert callable(share)
    with pytest.raises(ConfigError, match="needs more pulls than none"):
        share([0.5, 0.6], [])
    with pytest.raises(ConfigError, match="needs more pulls than none"):
        greedy_fraction(2, [0], [1.0])
    with pytest.raises(ConfigError, match="needs more pulls than none"):
        minimal_fraction(2, [])


def test_divergence_is_an_expected_log_ratio() -> None:
    """Oracle: the mean over draws from the first distribution."""
    draws = stream("divergence").random(200_000) < 0.3
    ratios = np.where(draws, math.log(0.3 / 0.6), math.log(0.7 / 0.4))
    assert bernoulli_divergence(0.3, 0.6) == pytest.approx(float(ratios.mean()), abs=0.005)
    assert bernoulli_divergence(0.0, 0.0) == 0.0 and bernoulli_divergence(1.0, 0.9) == pytest.approx(math.log(1 / 0.9))
    assert bernoulli_divergence(0.2, 0.0) == math.inf


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_divergence_is_at_least_pinskers_bound(p: float, q: float) -> None:
    assert bernoulli_divergence(p, q) >= 2 * (p - q) ** 2 - 1e-12


def test_lower_bound_of_the_two_settings() -> None:
    """Four arms at 1/4 below one at 3/4: 4 * 0.5 / (0.5 ln 3); nineteen at 0.4 below one at 0.6 by the same formula."""
    assert lai_robbins_slope([0.75] + [0.25] * 4) == pytest.approx(4 * 0.5 / (0.5 * math.log(3)))
    assert lai_robbins_slope([0.4] * 19 + [0.6]) == pytest.approx(19 * 0.2 / (0.2 * math.log(1.5)))
    assert lai_robbins_slope([0.5, 0.5]) == 0.0
    assert lai_robbins_slope([0.6, 0.5, 0.1]) == pytest.approx(
        lai_robbins_slope([0.6, 0.5]) + lai_robbins_slope([0.6, 0.1])
    )


def mean_ucb_regret(means: list[float], turns: int, episodes: int, alpha: float) -> NDArray[np.float64]:
    total = np.zeros(turns)
    for episode in range(episodes):
        rewards = (stream("lower bound", episode).random((turns, len(means))) < means).tolist()
        counts, sums, arms = [0] * len(means), [0.0] * len(means), []
        for turn in range(turns):
            arm = ucb(counts, sums, alpha)
            counts[arm] += 1
            sums[arm] += rewards[turn][arm]
            arms.append(arm)
        total += expected_regret(means, arms)
    return total / episodes


def test_ucb_stays_above_the_lower_bound_and_below_its_own_guarantee() -> None:
    """Slope per ln T of a UCB that is guaranteed to learn (alpha 2): at least Lai and Robbins', at most 8 / gap."""
    means = [0.75, 0.25]
    regret = mean_ucb_regret(means, 1500, 12, alpha=2.0)
    slope = (regret[-1] - regret[149]) / (math.log(1500) - math.log(150))
    assert lai_robbins_slope(means) <= slope <= 8 / 0.5
    assert regret[-1] <= 8 * math.log(1500) / 0.5 + (1 + math.pi**2 / 3) * 0.5


@pytest.mark.parametrize(
    ("scale", "exponent", "slope", "offset"),
    [(1.0, 1.0, 0.0, 0.0), (0.3, 2.0, 0.0, 2.0), (0.0, 1.0, 0.25, 1.0), (0.5, 1.5, 0.05, -1.0)],
)
def test_a_curve_that_is_of_the_form_is_found_again(scale: float, exponent: float, slope: float, offset: float) -> None:
    turns = np.arange(1, 1001)
    curve = fit_regret_curve(scale * np.log(turns) ** exponent / 0.5 + slope * turns + offset, gap=0.5)
    assert curve.error < 0.01
    assert curve.slope == pytest.approx(slope, abs=0.002) and curve.offset == pytest.approx(offset, abs=0.3)
    if scale:
        assert curve.exponent == pytest.approx(exponent, abs=0.051) and curve.scale == pytest.approx(scale, rel=0.1)


def test_the_fit_is_no_worse_than_any_curve_of_the_grid() -> None:
    generator = stream("noisy curve")
    turns = np.arange(1, 301)
    regret = 0.8 * np.log(turns) + 0.02 * turns + generator.normal(0, 0.2, 300)
    best = fit_regret_curve(regret, gap=0.2)
    for scale in np.linspace(0, 0.4, 9):
        for slope in np.linspace(0, 0.1, 6):
            for exponent in (0.5, 1.0, 2.0):
                rest = regret - scale * np.log(turns) ** exponent / 0.2 - slope * turns
                assert best.error <= np.sqrt(np.mean((rest - rest.mean()) ** 2)) + 1e-9


def test_weights_are_never_negative() -> None:
    falling = fit_regret_curve(-np.arange(1.0, 51.0), gap=0.5)
    assert falling.scale == falling.slope == 0.0 and falling.offset == pytest.approx(-25.5)


@pytest.mark.parametrize(("regret", "gap"), [([1.0, 2.0, 3.0], 0.5), (np.ones((4, 4)), 0.5), (range(9), 0.0)])
def test_a_fit_of_nothing_is_refused(regret: object, gap: float) -> None:
    with pytest.raises(ConfigError, match="at least 4 turns and a positive gap"):
        fit_regret_curve(np.asarray(regret), gap)
