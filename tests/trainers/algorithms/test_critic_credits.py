"""Credit of further critic methods: worked numbers, slow loops, what must not matter and what must."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.poad import discounted_token_rewards, turn_boundaries
from turngym.trainers.algorithms.vc_ppo import adaptive_decay
from turngym.trainers.core.turn_table import TurnTable, turn_table

torch.set_num_threads(1)


def double(rows: object) -> Tensor:
    return tensor(rows, dtype=torch.float64)


def close(found: Tensor | None, expected: object, atol: float = 1e-5) -> None:
    assert found is not None
    torch.testing.assert_close(found, double(expected), atol=atol, rtol=0, equal_nan=True)


def episode(rewards: Sequence[float], tokens: Sequence[int], end: str = "terminated") -> Trajectory:
    turns = [
        Turn("", str(k), "", completion_ids=(1,) * n, logprobs=(-1.0,) * n, reward=reward)
        for k, (reward, n) in enumerate(zip(rewards, tokens, strict=True))
    ]
    return Trajectory(EpisodeSpec(0, 0), turns=turns, terminated=end == "terminated", truncated=end == "truncated")


def table_of(
    episodes: Sequence[Trajectory], token: Sequence[float], final: Sequence[float] = (), turn: Sequence[float] = ()
) -> TurnTable:
    """The table with a critic; the value of a turn is that of its first token, or as given."""
    table = turn_table(episodes)
    values = double(turn) if turn else torch.zeros(table.num_turns, dtype=torch.float64)
    first = table.first_tokens()
    values[table.token_turn[first]] = double(token)[first]
    return table.with_values(values, double(token), double(final or [0.0] * len(episodes)))


def method(name: str, **config: Any) -> Any:
    return build(name, {name: {"whiten": False, "reward_kl_coef": 0.0, **config}})


# Bi-level GAE


def test_bi_level_gae_gives_the_worked_numbers() -> None:
    table = table_of([episode([0, 1], [2, 2])], [0.1, 0.3, 0.2, 0.4])
    algorithm = method("bi_level_gae", turn_gamma=0.9)
    close(algorithm.turn_returns(table), [0.9, 1.0])
    credit = algorithm.credit(table)
    close(credit.advantages, [0.8, 0.6, 0.8, 0.6])
    close(credit.returns, [0.9, 0.9, 1.0, 1.0])


def test_with_one_token_a_turn_it_is_the_estimation_over_turns() -> None:
    table = table_of([episode([0.3, -0.2, 1], [1, 1, 1])], [0.5, 0.6, 0.8])
    bi_level = method("bi_level_gae", turn_gamma=0.9, turn_lam=0.8).credit(table)
    turns = method("turn_ppo", gamma=0.9, lam=0.8).credit(table)
    torch.testing.assert_close(bi_level.advantages, turns.advantages)
    torch.testing.assert_close(bi_level.returns, turns.returns)


def test_inside_of_a_turn_only_its_own_worth_counts() -> None:
    """Values of the first token of the next turn reach this turn through the turns alone, where they are not read."""
    first = table_of([episode([0, 1], [2, 2])], [0.1, 0.3, 0.2, 0.4])
    other = table_of([episode([0, 1], [2, 2])], [0.1, 0.3, 9.9, 0.4])
    algorithm = method("bi_level_gae", turn_gamma=0.9, lam=0.5)
    assert torch.equal(algorithm.credit(first).advantages[:2], algorithm.credit(other).advantages[:2])


def test_bi_level_gae_bootstraps_a_cut_episode_once_a_turn() -> None:
    table = table_of([episode([0], [2], end="truncated")], [0.0, 0.0], final=[1.0])
    aware = method("bi_level_gae", turn_gamma=0.9, bootstrap_truncated=True)
    close(aware.credit(table).advantages, [0.9, 0.9])
    close(method("bi_level_gae", turn_gamma=0.9).credit(table).advantages, [0, 0])


def test_a_turn_without_tokens_stays_in_the_chain_of_turns() -> None:
    table = table_of([episode([0, 2, 0], [1, 0, 1])], [0.0, 0.0], turn=[0.0, 0.0, 0.0])
    close(method("bi_level_gae", turn_gamma=0.5).credit(table).advantages, [1.0, 0.0])


# POAD


def test_poad_gives_the_worked_numbers() -> None:
    # Section 10.3: three tokens, then an action whose advantage is 0: V_next .5 and a return of .5.
    table = table_of([episode([0, 0.5], [3, 1])], [0.1, 0.2, 0.3, 0.5])
    credit = method("poad").credit(table)
    close(credit.advantages, [0.352938, 0.26625, 0.175, 0])
    close(credit.returns[:3], [0.452938, 0.46625, 0.475])
    naive = method("poad", discount_tokens=True).credit(table)
    close(naive.advantages, [0.309251, 0.242937, 0.175, 0])


def slow_poad(rewards: Sequence[float], values: Sequence[Sequence[float]], gamma: float, lam: float) -> list[float]:
    """The two lines of the source, read literally, for turns that all have tokens."""
    found: list[float] = []
    following_value = following = 0.0
    for reward, turn in reversed(list(zip(rewards, values, strict=True))):
        for j in reversed(range(len(turn))):
            if j == len(turn) - 1:
                delta = reward + gamma * following_value - turn[j]
                following = delta + gamma * lam * following
            else:
                following = turn[j + 1] - turn[j] + lam * following
            found.insert(0, following)
        following_value = turn[0]
    return found


@pytest.mark.parametrize("lengths", [[1], [4], [2, 3], [1, 1, 1], [3, 1, 4, 2]])
def test_poad_equals_the_loop(lengths: list[int]) -> None:
    generator = torch.Generator().manual_seed(sum(lengths))
    rewards = torch.randn(len(lengths), generator=generator, dtype=torch.float64).tolist()
    token = torch.randn(sum(lengths), generator=generator, dtype=torch.float64)
    found = method("poad", gamma=0.8, lam=0.7).credit(table_of([episode(rewards, lengths)], token.tolist()))
    close(found.advantages, slow_poad(rewards, [part.tolist() for part in token.split(lengths)], 0.8, 0.7), 1e-12)


def test_boundaries_are_counted_through_turns_without_tokens_and_not_into_other_episodes() -> None:
    table = turn_table([episode([0] * 4, [2, 0, 1, 0]), episode([0], [2])])
    assert turn_boundaries(table).tolist() == [0, 2, 2, 0, 1]
    assert discounted_token_rewards(table, double([1, 1, 1, 1, 1]), 0.5).tolist() == [0, 1.5, 1.5, 0, 1]
    leading = turn_table([episode([1, 0], [0, 1])])
    assert discounted_token_rewards(leading, double([1, 0]), 0.5).tolist() == [1]


def test_a_longer_completion_does_not_lower_what_a_reward_is_worth() -> None:
    """What the method is about: at lam 1 and V 0 every token of a turn has the return of the turn."""
    short, long = (table_of([episode([0, 1], [n, 1])], [0.0] * (n + 1)) for n in (1, 6))
    algorithm, naive = method("poad", lam=1.0), method("poad", lam=1.0, discount_tokens=True)
    assert float(algorithm.credit(short).advantages[0]) == float(algorithm.credit(long).advantages[0])
    assert float(naive.credit(short).advantages[0]) > float(naive.credit(long).advantages[0])


# VC-PPO


def test_vc_ppo_decouples_advantages_from_targets() -> None:
    table = table_of([episode([1], [3])], [0.2, 0.5, 0.4])
    credit = method("vc_ppo").credit(table)
    close(credit.advantages, [0.7465, 0.47, 0.6])
    close(credit.returns, [1, 1, 1])
    same = method("vc_ppo", critic_lam=0.95).credit(table)
    close(same.returns, [0.9465, 0.97, 1.0])


def test_the_adaptive_decay_has_the_worked_numbers_and_is_never_negative() -> None:
    close(adaptive_decay(double([10, 20, 40, 100, 1000]), 0.05), [0, 0, 0.5, 0.8, 0.98], 1e-12)
    assert adaptive_decay(double([0, 1]), 0.05).tolist() == [0, 0]


def test_the_decay_follows_the_length_of_each_episode() -> None:
    lengths = [1, 4]
    values = [0.3, 0.2, 0.5, 0.4, 0.1]
    table = table_of([episode([1], [n]) for n in lengths], values)
    found = method("vc_ppo", alpha=0.5).credit(table)  # decay max(0, 1 - 2) = 0 and 1 - 1/2
    short = method("vc_ppo", lam=0.0).credit(table_of([episode([1], [1])], values[:1]))
    long = method("vc_ppo", lam=0.5).credit(table_of([episode([1], [4])], values[1:]))
    torch.testing.assert_close(found.advantages, torch.cat([short.advantages, long.advantages]))
    assert found.metrics["adaptive_lam"] == pytest.approx(0.25)
    close(found.returns, [1] * 5)


def test_only_the_critic_is_trained_at_first() -> None:
    algorithm = build("vc_ppo", {"vc_ppo": {"pretrain_iterations": 3}})
    assert [algorithm.trains_policy(k) for k in range(5)] == [False, False, False, True, True]
    with pytest.raises(ConfigError, match="alpha must be at least 0"):
        build("vc_ppo", {"vc_ppo": {"alpha": -1.0}})


# T-PPO


def test_extended_estimation_gives_the_worked_numbers() -> None:
    table = table_of([episode([0], [3], end="truncated")], [0.2, 0.5, 0.4], final=[7.0])
    credit = method("t_ppo").credit(table)
    close(credit.advantages, [0.205, -0.1, 0])
    assert bool(credit.returns.isnan().all()), "the critic learns from finished episodes"
    assert credit.metrics == {"explained_variance": 0.0, "episodes_cut_off": 1.0}
    close(method("t_ppo", bootstrap_truncated=False).credit(table).advantages, [-0.156, -0.48, -0.4])


def test_finished_episodes_are_credited_as_in_ppo_and_teach_the_critic_their_return() -> None:
    episodes = [episode([0, 1], [2, 1]), episode([0], [2], end="truncated")]
    table = table_of(episodes, [0.1, 0.2, 0.3, 0.4, 0.5])
    credit = method("t_ppo").credit(table)
    ppo = method("ppo", lam=0.95).credit(table)
    assert torch.equal(credit.advantages[:3], ppo.advantages[:3])
    close(credit.returns, [1, 1, 1, float("nan"), float("nan")])


def test_the_value_after_a_cut_is_that_of_the_last_token_even_with_a_discount() -> None:
    table = table_of([episode([0.5], [1], end="truncated")], [0.4])
    close(method("t_ppo", gamma=0.9).credit(table).advantages, [0.5 + 0.9 * 0.4 - 0.4])


def test_a_cut_episode_without_tokens_is_no_trouble() -> None:
    table = table_of([episode([1], [0], end="truncated"), episode([1], [1])], [0.25])
    close(method("t_ppo").credit(table).advantages, [0.75])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bi_level_gae", {"turn_gamma": 0.95, "turn_lam": 1.0, "gamma": 1.0, "lam": 1.0}),
        ("poad", {"gamma": 0.95, "lam": 0.95, "discount_tokens": False}),
        ("vc_ppo", {"gamma": 1.0, "lam": 0.95, "critic_lam": 1.0, "pretrain_iterations": 50, "alpha": 0.0}),
        ("t_ppo", {"gamma": 1.0, "lam": 0.95}),
        ("vine_ppo", {"num_rollouts": 9, "gamma": 1.0, "clip_low": 0.2, "clip_high": 0.2}),
        ("archer", {"gamma": 0.95, "slow_rate": 0.1, "critic_iterations": 20, "expectile": 0.5, "objective": "plain"}),
        (
            "arpo",
            {"episodes_per_group": 16, "entropy_weight": 0.2, "threshold": 0.5, "entropy_tokens": 20, "ddof": 1},
        ),
    ],
)
def test_defaults_are_those_of_the_sources(name: str, expected: dict[str, object]) -> None:
    config = build(name).config
    assert {setting: getattr(config, setting) for setting in expected} == expected


@pytest.mark.parametrize(
    ("name", "setting", "value", "message"),
    [
        ("bi_level_gae", "turn_gamma", 1.5, "turn_gamma must be from 0 to 1, got 1.5"),
        ("vc_ppo", "critic_lam", -1.0, "critic_lam must be from 0 to 1"),
        ("vine_ppo", "num_rollouts", 0, "num_rollouts must be at least 1, got 0"),
        ("arpo", "episodes_per_group", 1, "episodes_per_group must be at least 2"),
        ("arpo", "threshold", 2.0, "threshold must be from 0 to 1"),
        ("archer", "objective", "both", "objective must be one of plain, clipped; got 'both'"),
        ("archer", "replay_ratio", -1, "replay_ratio must be at least 0"),
    ],
)
def test_a_setting_outside_of_its_range_is_refused(name: str, setting: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(name, {name: {setting: value}})
    assert message in str(caught.value)
