"""Bernoulli and Gaussian bandits: fixed rewards, shuffled arms, regret as it is defined, and learners that learn."""

import math
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from turngym.envs.textgames import SPECS
from turngym.envs.textgames.bandit.env import ArmedBandit, BernoulliBandit, GaussianBandit
from turngym.envs.textgames.bandit.metrics import expected_regret, fit_regret_curve, lai_robbins_slope
from turngym.seeding import stream

Kind: TypeAlias = type[BernoulliBandit] | type[GaussianBandit]
BOTH = pytest.mark.parametrize("kind", [BernoulliBandit, GaussianBandit])


def finish(env: ArmedBandit, player: str, seed: int = 0) -> dict[str, Any]:
    """Play to the end as a reference player, or at random."""
    env.expert = player
    generator = stream("random player", seed)
    terminated, info = False, dict[str, Any]()
    while not terminated:
        action = env.names[int(generator.integers(env.arms))] if player == "random" else env.expert_action()
        _, _, terminated, truncated, info = env.step(action)
        assert not truncated
    return info


def curve(env: ArmedBandit, player: str, episodes: int) -> NDArray[np.float64]:
    """Return the mean expected regret after each turn."""
    total = np.zeros(env.horizon)
    for seed in range(episodes):
        env.reset(seed=seed)
        finish(env, player, seed)
        total += expected_regret(env.means, env.pulls)
    return total / episodes


def test_ucb_has_less_regret_than_greedy_and_random_over_1000_turns_and_grows_slower_than_linearly() -> None:
    env = BernoulliBandit(horizon=1000)
    curves = {player: curve(env, player, 20) for player in ("ucb", "thompson", "greedy", "random")}
    final = {player: float(regret[-1]) for player, regret in curves.items()}
    assert final["ucb"] < 0.5 * final["greedy"] < 0.5 * final["random"]
    assert final["thompson"] < 0.5 * final["greedy"]
    assert final["random"] == pytest.approx(1000 * 0.5 * 0.8, rel=0.05)
    slopes = {player: fit_regret_curve(regret, gap=0.5).slope for player, regret in curves.items()}
    assert slopes["ucb"] < 0.02 and slopes["thompson"] < 0.02
    assert slopes["random"] == pytest.approx(0.4, abs=0.03) and slopes["greedy"] > 0.05
    assert final["thompson"] > 0.5 * lai_robbins_slope(env.means) * math.log(1000)


@BOTH
def test_the_best_arm_is_shuffled_over_seeds(kind: Kind) -> None:
    env = kind()
    best = []
    for seed in range(500):
        env.reset(seed=seed)
        best.append(int(np.argmax(env.means)))
    counts = np.bincount(best, minlength=5)
    assert counts.min() > 65, counts  # 100 expected, 8.9 standard deviation


def test_the_presets_follow_their_settings() -> None:
    """The easy one must have the large gap."""
    easy, hard = SPECS["turngym/BernoulliBandit-v0"].kwargs, SPECS["turngym/BernoulliBanditHard-v0"].kwargs
    for options, gap in ((easy, 0.5), (hard, 0.2), ({"arms": 20, "gap": 0.2, "horizon": 1000}, 0.2)):
        env = BernoulliBandit(**options)
        env.reset(seed=1)
        means = sorted(env.means)
        assert means[-1] == pytest.approx(0.5 + gap / 2) and set(means[:-1]) == {means[0]}
        assert means[0] == pytest.approx(0.5 - gap / 2) and len(means) == env.arms


@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("turngym/BernoulliBandit-v0", BernoulliBandit),
        ("turngym/BernoulliBanditHard-v0", BernoulliBandit),
        ("turngym/GaussianBandit-v0", GaussianBandit),
        ("turngym/GaussianBanditHard-v0", GaussianBandit),
    ],
)
def test_the_expert_mostly_succeeds_and_random_play_does_not(env_id: str, kind: Kind) -> None:
    env = kind(**SPECS[env_id].kwargs, split="test")
    rates = {}
    for player in ("ucb", "random"):
        successes = []
        for seed in range(100):
            env.reset(seed=seed)
            successes.append(finish(env, player, seed)["success"])
        rates[player] = np.mean(successes)
    assert rates["ucb"] >= 0.75 and rates["random"] <= 0.05, rates


@BOTH
def test_always_the_best_arm_is_always_a_success(kind: Kind) -> None:
    env = kind(success_share=0.0, horizon=10)
    for seed in range(200):
        env.reset(seed=seed)
        best = env.names[int(np.argmax(env.means))]
        for turn in range(10):
            info = env.step(best)[4]
            assert info["score"] == 1.0 and info["success"] == (-1 if turn < 9 else 1)
        assert env.regret == 0.0


@BOTH
def test_regret_and_score_are_those_of_the_means_and_not_of_the_rewards(kind: Kind) -> None:
    env = kind(horizon=20)
    generator = stream("score")
    env.reset(seed=5)
    for turn in range(1, 21):
        arm = int(generator.integers(5))
        info = env.step(env.names[arm])[4]
        regret = sum([max(env.means) - env.means[arm] for arm in env.pulls])
        random_regret = turn * (max(env.means) - sum(env.means) / 5)
        assert env.regret == pytest.approx(regret)
        assert info["score"] == pytest.approx(1 - regret / random_regret)
    assert info["success"] == (env.regret <= 0.75 * random_regret)


@BOTH
def test_rewards_do_not_depend_on_what_was_pulled_before(kind: Kind) -> None:
    """All members of a group meet the same reward for the same arm in the same turn."""
    one, other = kind(), kind()
    one.reset(seed=7)
    other.reset(seed=7)
    for turn in range(50):
        first = one.names[turn % 5]
        second = first if turn % 3 == 0 else other.names[(turn + 2) % 5]
        rewards = one.step(first)[1], other.step(second)[1]
        if first == second:
            assert rewards[0] == rewards[1]


def test_bernoulli_rewards_have_their_means() -> None:
    env = BernoulliBandit(horizon=20_000)
    env.reset(seed=0)
    assert set(np.unique(env._rewards)) == {0.0, 1.0}
    assert env._rewards.mean(axis=0) == pytest.approx(env.means, abs=0.02)


def test_gaussian_rewards_have_their_means_and_deviations() -> None:
    env = GaussianBandit(spread=3.0, noise=2.0, horizon=20_000, arms=20)
    means = []
    for seed in range(3):
        env.reset(seed=seed)
        assert env._rewards.mean(axis=0) == pytest.approx(env.means, abs=0.08)
        assert env._rewards.std(axis=0) == pytest.approx([2.0] * 20, abs=0.05)
        means += list(env.means)
    assert 2.2 < np.std(means) < 3.8
    assert GaussianBandit(spread=3.0)._scale == 3.0


@BOTH
@pytest.mark.parametrize("player", ["ucb", "thompson", "greedy"])
def test_players_disturb_nothing_and_say_the_same_twice(kind: Kind, player: str) -> None:
    env, quiet = kind(expert=player), kind()
    env.reset(seed=3)
    quiet.reset(seed=3)
    for _ in range(50):
        action = env.expert_action()
        assert env.expert_action() == action
        assert env.step(action)[:2] == quiet.step(action)[:2]
    assert env.np_random.bit_generator.state == quiet.np_random.bit_generator.state


@BOTH
@pytest.mark.parametrize("player", ["ucb", "thompson", "greedy"])
def test_players_see_only_what_was_seen(kind: Kind, player: str) -> None:
    env = kind(expert=player)
    env.reset(seed=3)
    for turn in range(20):
        action = env.expert_action()
        for _ in range(3):
            assert env.resample_hidden() and env.expert_action() == action
        env.step(env.names[turn % 5])


def test_thompson_draws_anew_each_turn_and_differently_for_each_seed() -> None:
    env = BernoulliBandit(expert="thompson")
    first = set()
    for seed in range(40):
        env.reset(seed=seed)
        first.add(env.expert_action())
    assert first == set(env.names)
