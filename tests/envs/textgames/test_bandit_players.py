"""Reference players: arms by the formulas, recomputed; greedy without bonus; Thompson only where it is valid."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.bandit.players import (
    LinUCB,
    bonus,
    greedy,
    thompson_bernoulli,
    thompson_gaussian,
    ucb,
)
from turngym.errors import ConfigError
from turngym.seeding import stream

histories = st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), min_size=2, max_size=8)


@given(histories, st.floats(0, 3), st.floats(0.1, 5))
def test_ucb_takes_the_highest_bound(history: list[tuple[int, float]], alpha: float, scale: float) -> None:
    counts = [count for count, _ in history]
    sums = [count * mean for count, mean in history]
    turns = sum(counts)
    values = [
        total / count + scale * math.sqrt(alpha * math.log(turns) / count)
        for count, total in zip(counts, sums, strict=True)
    ]
    assert values[ucb(counts, sums, alpha, scale)] == pytest.approx(max(values))
    assert values[0] == pytest.approx(sums[0] / counts[0] + bonus(counts[0], turns, alpha, scale))


def test_every_arm_is_pulled_once_first() -> None:
    for choose in (ucb, greedy):
        counts, sums = [0, 0, 0, 0], [0.0] * 4
        for expected in range(4):
            arm = choose(counts, sums)
            assert arm == expected
            counts[arm], sums[arm] = 1, 1.0


def test_greedy_has_no_bonus() -> None:
    """An arm that is worse by a hair and was hardly ever tried: UCB goes back to it, greedy does not."""
    counts, sums = [100, 1], [60.0, 0.59]
    assert ucb(counts, sums) == 1 and greedy(counts, sums) == 0


@given(histories)
def test_greedy_takes_the_highest_mean(history: list[tuple[int, float]]) -> None:
    counts = [count for count, _ in history]
    sums = [count * mean for count, mean in history]
    means = [total / count for count, total in zip(counts, sums, strict=True)]
    assert greedy(counts, sums) == means.index(max(means))


def test_ties_go_to_the_first_arm() -> None:
    assert ucb([2, 2, 2], [1, 1, 1]) == 0 and greedy([3, 1, 1], [0, 1, 1]) == 1


def test_thompson_pulls_each_arm_as_often_as_it_is_likely_to_be_best() -> None:
    """Beta(3, 2) against Beta(2, 3): by integration, the first is higher with probability 0.7571."""
    generator = stream("thompson", 1)
    share = np.mean([thompson_bernoulli([3, 3], [2, 1], generator) == 0 for _ in range(8000)])
    grid = (np.arange(4000) + 0.5) / 4000
    first, second = 12 * grid**2 * (1 - grid), 12 * grid * (1 - grid) ** 2
    expected = float(np.sum(first * np.cumsum(second)) / 4000**2)
    assert expected == pytest.approx(0.7571, abs=1e-3)
    assert share == pytest.approx(expected, abs=0.015)


def test_thompson_for_normal_rewards_draws_from_the_posterior() -> None:
    """Oracle: the posterior means and variances of a normal mean under a normal prior."""
    counts, sums, noise, spread = [4, 0], [6.0, 0.0], 2.0, 1.0
    variance = 1 / (4 / noise**2 + 1 / spread**2)
    difference = variance * sums[0] / noise**2
    expected = 0.5 * (1 + math.erf(difference / math.sqrt(variance + spread**2) / math.sqrt(2)))
    generator = stream("thompson", 2)
    share = np.mean([thompson_gaussian(counts, sums, generator, noise, spread) == 0 for _ in range(8000)])
    assert share == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("sums", [[0.5, 1], [-1, 1], [3, 1]])
def test_beta_posteriors_refuse_rewards_that_are_not_zero_or_one(sums: list[float]) -> None:
    with pytest.raises(ConfigError, match="Beta posteriors need rewards of 0 and 1, got sums"):
        thompson_bernoulli([2, 2], sums, stream("thompson", 3))


@given(st.integers(0, 1000))
def test_linucb_equals_ridge_regression(seed: int) -> None:
    """Oracle: solve the normal equations of every arm from its own history."""
    generator = stream("linucb", seed)
    learner = LinUCB(3, 4, alpha=0.5)
    history: list[tuple[np.ndarray[tuple[int], np.dtype[np.float64]], int, float]] = []
    for _ in range(25):
        context, arm = generator.normal(size=4), int(generator.integers(3))
        history.append((context, arm, float(generator.normal())))
        learner.update(*history[-1])
    context = generator.normal(size=4)
    estimates, extras = learner.parts(context)
    for arm in range(3):
        gram, target = np.eye(4), np.zeros(4)
        for seen, pulled, reward in history:
            if pulled == arm:
                gram += np.outer(seen, seen)
                target += reward * seen
        assert estimates[arm] == pytest.approx(context @ np.linalg.solve(gram, target))
        assert extras[arm] == pytest.approx(0.5 * math.sqrt(context @ np.linalg.solve(gram, context)))
    assert learner.choose(context) == int(np.argmax(estimates + extras))


def test_linucb_begins_with_the_width_of_the_identity() -> None:
    context = np.array([3.0, 4.0])
    assert LinUCB(2, 2).values(context).tolist() == [2.5, 2.5] and LinUCB(2, 2, alpha=0.0).choose(context) == 0


@settings(max_examples=30)
@given(histories, st.integers(0, 99))
def test_players_leave_what_they_are_given_alone(history: list[tuple[int, float]], seed: int) -> None:
    counts = [count for count, _ in history]
    sums = [float(round(count * mean)) for count, mean in history]
    assume(all(total <= count for count, total in zip(counts, sums, strict=True)))
    before = list(counts), list(sums)
    for arm in (
        ucb(counts, sums),
        greedy(counts, sums),
        thompson_bernoulli(counts, sums, stream("players", seed)),
        thompson_gaussian(counts, sums, stream("players", seed), 1.0, 1.0),
    ):
        assert 0 <= arm < len(counts)
    assert (counts, sums) == before
