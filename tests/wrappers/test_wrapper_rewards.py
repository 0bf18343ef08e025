"""Progress rewards change no order of policies; normalised rewards have the scale of the returns."""

import itertools
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import toy_envs
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core import Outcome
from turngym.errors import ConfigError
from turngym.wrappers import wrap
from turngym.wrappers.rewards.normalize_reward import Moments, NormalizeReward
from turngym.wrappers.rewards.progress_reward import ProgressReward, potential

ACTIONS = ("up", "down", "stop")


class Walk(toy_envs.Counter):
    """A walk that ``stop`` ends: progress is worth nothing if one stops below the goal, one step more is punished."""

    costs: ClassVar[dict[str, float]] = {"up": -0.3, "down": -0.1, "stop": 0.0}

    def apply_action(self, action: str) -> Outcome[str]:
        self.count = max(0, self.count + {"up": 1, "down": -1}.get(action, 0))
        is_over = action == "stop" or self.count >= self.goal
        return Outcome(f"{self.count}", self.costs[action] + float(self.count >= self.goal), is_over, is_over)


def rewards_of(env: gymnasium.Env[Any, Any], actions: tuple[str, ...]) -> tuple[list[float], bool]:
    """Return the rewards of an episode, and whether it terminated."""
    env.reset(seed=0)
    rewards = []
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(action)
        rewards.append(float(reward))
        if terminated or truncated:
            return rewards, terminated
    return rewards, False


def discounted(rewards: list[float], gamma: float) -> float:
    return sum(reward * gamma**turn for turn, reward in enumerate(rewards))


def shifts(gamma: float, zero_when: str, *, terminated: bool) -> set[float]:
    """Return by how much shaping moves the return, over every policy of a walk of at most four turns."""
    plain = Walk(goal=3, max_turns=4)
    shaped = ProgressReward(Walk(goal=3, max_turns=4), gamma=gamma, scale=2.0, zero_when=zero_when)
    found = set()
    for actions in itertools.product(ACTIONS, repeat=4):
        (before, ended), (after, _) = rewards_of(plain, actions), rewards_of(shaped, actions)
        if ended == terminated:
            found.add(round(discounted(after, gamma) - discounted(before, gamma), 9))
    return found


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.5])
def test_shaping_moves_the_return_of_every_policy_by_the_same(gamma: float) -> None:
    """The sum telescopes to minus the potential of the start, which is 0 here."""
    assert shifts(gamma, "terminated", terminated=True) == {0.0}
    assert shifts(gamma, "over", terminated=True) == {0.0}
    assert shifts(gamma, "over", terminated=False) == {0.0}


def test_a_kept_potential_would_move_policies_apart() -> None:
    """Negative oracle: without the zero at the end a policy that stops halfway is paid for its progress."""
    assert len(shifts(0.9, "never", terminated=True)) > 1
    bonus = shifts(0.9, "terminated", terminated=False)
    assert bonus == {round(0.9**4 * 2.0 * count / 3, 9) for count in (0, 1, 2)}  # what a critic bootstraps from


@pytest.mark.parametrize("start", [0, 1, 2])
def test_the_shift_is_minus_the_potential_of_the_start(start: int) -> None:
    env = ProgressReward(Walk(goal=4), gamma=0.5, scale=8.0)
    env.reset(seed=0, options={"task": start})
    rewards = [env.step(action)[1] for action in ("up", "stop")]
    # by hand: potential 2 per step; up: -0.3 + 0.5*2(s+1) - 2s; stop: 0 + 0 - 2(s+1)
    assert rewards == pytest.approx([-0.3 + (start + 1) - 2 * start, -2.0 * (start + 1)])
    assert discounted(rewards, 0.5) == pytest.approx(-0.3 - 2 * start)


def test_without_discount_the_added_rewards_are_the_changes_of_progress() -> None:
    env = ProgressReward(Walk(goal=4), zero_when="never")
    env.reset(seed=0)
    assert [env.step(a)[1] for a in ("up", "up", "down")] == pytest.approx([0.25 - 0.3, 0.25 - 0.3, -0.25 - 0.1])


def test_unknown_progress_is_no_potential() -> None:
    assert potential(float("nan"), 3.0) == 0.0 and potential(0.5, 3.0) == 1.5


def test_the_potential_of_the_last_episode_is_forgotten() -> None:
    env = ProgressReward(Walk(goal=4), zero_when="never")
    env.reset(seed=0)
    env.step("up")
    env.reset(seed=0)
    assert env.step("up")[1] == pytest.approx(0.25 - 0.3)


@pytest.mark.parametrize("options", [{"gamma": 1.1}, {"scale": -1}, {"zero_when": "done"}])
def test_options_of_the_progress_reward_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ProgressReward(Walk(), **options)


# normalize_reward


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_moments_are_those_of_all_numbers_at_once(values: list[float]) -> None:
    moments = Moments()
    for value in values:
        moments = moments.with_value(value)
    assert moments.size == len(values)
    assert moments.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    assert moments.squares == pytest.approx(np.var(values) * len(values), rel=1e-6, abs=1e-3)


def test_rewards_are_divided_by_the_deviation_of_the_discounted_sums() -> None:
    """By hand: rewards -0.3, -0.1, -0.3 and gamma 0.5 give the sums -0.3, -0.25, -0.425."""
    env = NormalizeReward(Walk(goal=9), gamma=0.5)
    env.reset(seed=0)
    got = [env.step(action)[1] for action in ("up", "down", "up")]
    sums = [-0.3, -0.25, -0.425]
    assert got == pytest.approx([-0.3, -0.1 / np.std(sums[:2]), -0.3 / np.std(sums)])
    env.reset(seed=0)  # the sum begins anew, the statistics continue
    assert env.step("up")[1] == pytest.approx(-0.3 / np.std([*sums, -0.3]))


def test_in_the_long_run_the_sums_have_deviation_one() -> None:
    env = NormalizeReward(Walk(goal=30, max_turns=40), gamma=0.9, clip=None)
    generator = np.random.default_rng(0)
    sums = []
    for episode in range(60):
        env.reset(seed=episode)
        total, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, _ = env.step(ACTIONS[generator.integers(2)])
            total, is_over = 0.9 * total + reward, terminated or truncated
            sums.append(total)
    assert np.std(sums[600:]) == pytest.approx(1, rel=0.1)


def test_frozen_statistics_stay_and_can_be_carried_over() -> None:
    live, frozen = NormalizeReward(Walk(goal=9)), NormalizeReward(Walk(goal=9), frozen=True)
    live.reset(seed=0)
    for action in ("up", "down", "up"):
        live.step(action)
    frozen.statistics = live.statistics
    frozen.reset(seed=0)
    for _ in range(3):
        assert frozen.step("up")[1] == pytest.approx(-0.3 / live.scale)
    assert frozen.statistics == live.statistics
    live.frozen = True
    frozen.restore(live.snapshot())  # whether they are frozen does not matter to a snapshot
    assert frozen.snapshot() == live.snapshot()
    for damage in ({}, {"size": -1, "mean": 0, "squares": 1}, {"size": 2, "mean": 0, "squares": float("nan")}):
        with pytest.raises(ConfigError, match="statistics must"):
            frozen.statistics = damage


def test_statistics_belong_to_one_environment_and_are_in_its_snapshot() -> None:
    one, other = NormalizeReward(Walk(goal=9)), NormalizeReward(Walk(goal=9))
    for env in (one, other):
        env.reset(seed=0)
    one.step("up")
    assert other.statistics["size"] == 0
    other.restore(one.snapshot())
    assert other.statistics == one.statistics and other.step("down")[1] == one.step("down")[1]


def test_rewards_are_clipped_and_equal_returns_leave_them_as_they_are() -> None:
    env = NormalizeReward(Walk(goal=9), clip=0.2)
    env.reset(seed=0)
    assert env.step("up")[1] == -0.2
    still = NormalizeReward(Walk(goal=9))
    still.reset(seed=0)
    assert [still.step(action)[1] for action in ("stop",)] == [0.0] and still.scale == 1.0


def test_the_order_of_reward_wrappers_shows_in_the_reward() -> None:
    """A wrapper further out sees what the inner one gives."""
    inside = wrap(Walk(goal=4), "progress_reward:zero_when=never", "format_reward:format=tag,penalty=0.5")
    inside.reset(seed=0)
    assert inside.step("up")[1] == pytest.approx(-0.3 + 0.25 - 0.5)
