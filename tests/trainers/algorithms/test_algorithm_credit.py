"""What each algorithm credits its tokens with: worked numbers, reference vectors, slow loops and plausible mistakes."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from oracle import all_cases, close, double
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.gigpo import step_returns
from turngym.trainers.algorithms.ppo import paying_turns, token_rewards
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable, turn_table


def episode(
    rewards: Sequence[float],
    anchors: Sequence[str] = (),
    tokens: Sequence[int] = (),
    invalid: Sequence[int] = (),
    group: int = 0,
    end: str = "terminated",
) -> Trajectory:
    turns = [
        Turn(
            "",
            anchor,
            "",
            completion_ids=(1,) * n,
            logprobs=(-1.0,) * n,
            reward=reward,
            action_is_valid=k not in invalid,
        )
        for k, (reward, anchor, n) in enumerate(
            zip(rewards, anchors or map(str, range(len(rewards))), tokens or [1] * len(rewards), strict=True)
        )
    ]
    return Trajectory(
        EpisodeSpec(0, 0, group), turns=turns, terminated=end == "terminated", truncated=end == "truncated"
    )


def with_critic(table: TurnTable, turn: object, token: object, final: object) -> TurnTable:
    return table.with_values(double(turn), double(token), double(final))


def per_turn(table: TurnTable, credit: Credit) -> Tensor:
    """The credit of each turn, all of whose tokens must have the same."""
    turns = credit.advantages[table.first_tokens()]
    assert torch.equal(turns.repeat_interleave(table.num_tokens), credit.advantages)
    return turns


# GRPO


def test_grpo_credits_every_token_with_its_episode() -> None:
    # Section 7: returns 1, 0, 0, 1.
    table = turn_table([episode([0, r], tokens=[2, 1]) for r in (1, 0, 0, 1)])
    found = build("grpo").credit(table).advantages.reshape(4, 3)
    close(found, [[0.866024] * 3, [-0.866024] * 3, [-0.866024] * 3, [0.866024] * 3], 1e-6)
    dr_grpo = build("grpo", {"grpo": {"scale_by_std": False}}).credit(table).advantages.reshape(4, 3)
    close(dr_grpo, [[0.5] * 3, [-0.5] * 3, [-0.5] * 3, [0.5] * 3])


def test_over_rows_long_trajectories_weigh_more() -> None:
    # A won in 3 turns, B lost in 1. Over trajectories the mean is 1/2, over rows 3/4.
    table = turn_table([episode([0, 0, 1]), episode([0])])
    by_trajectory = build("grpo", {"grpo": {"scale_by_std": False}})
    by_row = build("grpo", {"grpo": {"scale_by_std": False, "over": "rows"}})
    close(by_trajectory.credit(table).advantages, [0.5, 0.5, 0.5, -0.5])
    close(by_row.credit(table).advantages, [0.25, 0.25, 0.25, -0.75])


def test_groups_are_compared_by_themselves_and_counted() -> None:
    table = turn_table([episode([1], group=7), episode([5], group=3), episode([0], group=7), episode([2], group=1)])
    credit = build("grpo", {"grpo": {"scale_by_std": False}}).credit(table)
    close(credit.advantages, [0.5, 0, -0.5, 0])
    assert credit.metrics == {"groups_shrunk_to_one": 2.0, "groups_with_equal_returns": 0.0}
    equal = build("grpo").credit(turn_table([episode([1]), episode([1]), episode([1], group=1), episode([0], group=1)]))
    assert equal.metrics["groups_with_equal_returns"] == 0.5
    assert equal.advantages[:2].tolist() == [0, 0]


def test_an_invalid_action_costs_its_own_turn_only() -> None:
    table = turn_table([episode([0, 1], invalid=[1]), episode([0, 0])])
    config = {"scale_by_std": False, "invalid_penalty": 0.1}
    close(build("grpo", {"grpo": config}).credit(table).advantages, [0.5, 0.4, -0.5, -0.5])


def test_equal_returns_with_one_invalid_action_do_not_explode() -> None:
    """Subtracted before the division, the penalty of 0.1 would be divided by an epsilon of 1e-6."""
    table = turn_table([episode([0, 1], invalid=[1]), episode([0, 1])])
    close(build("grpo", {"grpo": {"invalid_penalty": 0.1}}).credit(table).advantages, [0, -0.1, 0, 0])


# GiGPO: section 4.4, with the penalty of .1 of the last turn subtracted after the comparison instead of before it.
# Discounted by .95 the returns are [9.025, 9.5, 10] and [0, 0].

CHECK_GIGPO = [episode([0, 0, 10], "ABC", [1, 2, 1]), episode([0, 0], "AB", [2, 1], invalid=[1])]


def test_gigpo_step_returns_by_hand() -> None:
    close(step_returns(turn_table(CHECK_GIGPO), gamma=0.95), [9.025, 9.5, 10, 0, 0])


@pytest.mark.parametrize(
    ("over", "mode", "omega", "expected"),
    [
        # Episode part over rows: returns [10, 10, 10, 0, 0], mean 6, sample deviation 5.477226.
        ("rows", "mean_std_norm", 0.0, [0.730297] * 3 + [-1.095445, -1.195445]),
        ("rows", "mean_norm", 0.0, [4.0] * 3 + [-6.0, -6.1]),
        # Once a trajectory: 10 and 0, mean 5, deviation 7.071068.
        ("trajectories", "mean_std_norm", 0.0, [0.707107] * 3 + [-0.707107, -0.807107]),
        # Step part: A holds {9.025, 0}, B {9.5, 0}, C is alone.
        ("rows", "mean_std_norm", 1.0, [1.437404, 1.437404, 0.730297, -1.802552, -1.902552]),
        ("rows", "mean_norm", 1.0, [8.5125, 8.75, 4.0, -10.5125, -10.85]),
        ("trajectories", "mean_norm", 1.0, [9.5125, 9.75, 5.0, -9.5125, -9.85]),
    ],
)
def test_gigpo_by_hand(over: str, mode: str, omega: float, expected: list[float]) -> None:
    table = turn_table(CHECK_GIGPO)
    credit = build("gigpo", {"gigpo": {"over": over, "mode": mode, "omega": omega}}).credit(table)
    close(per_turn(table, credit), expected)
    assert credit.metrics["turns_with_shared_anchor"] == pytest.approx(0.8)


def test_the_penalty_before_discounting_would_be_another_method() -> None:
    """Taken before discounting, the turn before the invalid one would see 0.95 times the penalty."""
    table = turn_table(CHECK_GIGPO)
    wrong = table.unpad(
        F.discounted_returns(table.pad(table.reward - 0.1 * ~table.is_valid), table.turn_mask(), gamma=0.95)
    )
    assert float(wrong[3]) == pytest.approx(-0.095)
    assert float(step_returns(table, gamma=0.95)[3]) == 0


def test_the_same_anchor_in_another_group_is_not_compared() -> None:
    table = turn_table([episode([r], "A", group=g) for g, r in ((0, 1), (0, 0), (1, 5), (1, 3))])
    found = build("gigpo", {"gigpo": {"mode": "mean_norm"}}).credit(table).advantages
    close(found, [1.0, -1.0, 2.0, -2.0])  # half from the episode, half from the step


def test_revisiting_a_state_is_a_step_group_of_its_own() -> None:
    # Within one trajectory A is visited at return .9 and 1 (gamma .9), so the earlier visit is worse by half of .1.
    table = turn_table([episode([0, 1], "AA"), episode([0, 1], "BC")])
    close(build("gigpo", {"gigpo": {"mode": "mean_norm", "gamma": 0.9}}).credit(table).advantages, [-0.05, 0.05, 0, 0])


def rows_of(case: dict[str, Any]) -> TurnTable:
    episodes = []
    for key, rows in itertools.groupby(range(len(case["traj_index"])), key=lambda row: case["traj_index"][row]):
        members = list(rows)
        episodes.append(
            episode(
                [case["step_reward"][row] for row in members],
                [case["anchor_obs"][row] for row in members],
                [int(sum(case["response_mask"][row])) for row in members],
                group=int(key[1]),
            )
        )
    return turn_table(episodes)


def test_gigpo_equals_the_released_code() -> None:
    for case in all_cases("gigpo"):
        for over in ["rows", "trajectories"]:
            table, settings = rows_of(case), case["settings"]
            close(step_returns(table, gamma=settings["gamma"]), case["step_discounted_returns"])
            config = {"mode": settings["mode"], "gamma": settings["gamma"], "singleton": "raw", "over": over}
            episodes = build("gigpo", {"gigpo": {**config, "omega": 0.0}}).credit(table)
            column = "episode_advantages_cross_all_steps" if over == "rows" else "episode_advantages_per_trajectory"
            close(per_turn(table, episodes), [row[0] for row in case[column]])
            if over == "rows":
                whole = build("gigpo", {"gigpo": {**config, "omega": settings["step_advantage_w"]}}).credit(table)
                close(per_turn(table, whole), [row[0] for row in case["advantages"]])


# PPO


def test_ppo_runs_along_the_episode_across_turns() -> None:
    # Tokens: turn 1 has 2, turn 2 has 1; rewards 1 and 2 stand on tokens 2 and 3. gamma .9, lam .8, from the right:
    # A3 = 2 - .3 = 1.7; A2 = 1 + .27 - .2 + .72*1.7 = 2.294; A1 = .18 - .1 + .72*2.294 = 1.73168.
    table = with_critic(turn_table([episode([1, 2], tokens=[2, 1])]), [0.1, 0.3], [0.1, 0.2, 0.3], [0.0])
    credit = build("ppo", {"ppo": {"gamma": 0.9, "lam": 0.8, "whiten": False}}).credit(table)
    close(credit.advantages, [1.73168, 2.294, 1.7], 1e-9)
    assert credit.returns is not None
    close(credit.returns, [1.83168, 2.494, 2.0], 1e-9)
    whitened = build("ppo", {"ppo": {"gamma": 0.9, "lam": 0.8}}).credit(table)
    torch.testing.assert_close(whitened.advantages, F.whiten(credit.advantages))
    assert whitened.returns is not None
    close(whitened.returns, [1.83168, 2.494, 2.0], 1e-9)


def test_per_row_is_the_step_row_baseline() -> None:
    # Every turn ends with the whole return of 3; the second is invalid, so 2.9; nothing passes from turn to turn.
    table = with_critic(
        turn_table([episode([1, 2], tokens=[2, 1], invalid=[1], end="truncated")]), [0.1, 0.3], [0.1, 0.2, 0.3], [50.0]
    )
    credit = build("ppo", {"ppo": {"whiten": False, "per_row": True, "invalid_penalty": 0.1}}).credit(table)
    close(credit.advantages, [2.9, 2.8, 2.6])


def test_a_truncated_episode_is_bootstrapped_where_asked_and_a_terminated_one_never() -> None:
    episodes = [episode([1], end=end) for end in ("truncated", "terminated", "neither")]
    table = with_critic(turn_table(episodes), [0.5] * 3, [0.5] * 3, [4.0] * 3)
    config = {"gamma": 0.9, "whiten": False}
    for name in ("ppo", "turn_ppo"):
        aware = build(name, {name: {**config, "bootstrap_truncated": True}}).credit(table).advantages
        close(aware, [1 + 0.9 * 4 - 0.5, 0.5, 0.5])
        close(build(name, {name: config}).credit(table).advantages, [0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 0, 0, 1], [0, 0, 0, 3]),
        ([0, 0, 1, 1], [2, 2, 2, 3]),
        ([0, 2, 0, 0], [1, 1, 1, 1]),
        ([0, 0, 0, 0], [-1] * 4),
    ],
)
def test_a_turn_without_tokens_hands_its_reward_on(tokens: list[int], expected: list[int]) -> None:
    """Backwards where it can, forwards where it must, and never into another episode."""
    other = episode([100.0], tokens=[1])
    table = turn_table([other, episode([1, 10, 100, 1000], tokens=tokens), other])
    found = paying_turns(table)
    assert (found[1:-1] - (found[1:-1] >= 0).long()).tolist() == expected
    assert float(token_rewards(table, table.reward).sum()) == 200 + (1111 if sum(tokens) else 0)


def test_every_reward_is_found_on_the_tokens() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        lengths = torch.randint(0, 3, (4,), generator=generator).tolist()
        rewards = torch.randn(4, generator=generator).tolist()
        table = turn_table([episode(rewards, tokens=lengths), episode([1.0], tokens=[0]), episode([1.0])])
        expected = (sum(rewards) if sum(lengths) else 0.0) + 1.0
        assert float(token_rewards(table, table.reward).sum()) == pytest.approx(expected)


def test_a_critic_method_without_values_says_so() -> None:
    for name, column in (("ppo", "token_value"), ("turn_ppo", "turn_value")):
        with pytest.raises(ConfigError, match=f"the turn table has no '{column}'. Fill the critic's columns"):
            build(name).credit(turn_table([episode([1])]))


# Turn-PPO


def turn_ppo(**config: Any) -> Any:
    return build("turn_ppo", {"turn_ppo": {"gamma": 0.5, "lam": 0.5, "whiten": False, **config}})


def test_turn_ppo_credits_turns_and_trains_the_critic_at_their_start() -> None:
    # Section 2.5: r [0, 1], V [.2, .4], gamma = lam = .5 -> A [.15, .6], returns [.35, 1].
    table = with_critic(turn_table([episode([0, 1], tokens=[1, 3])]), [0.2, 0.4], [0.2, 0.4, 9, 9], [0.0])
    credit = turn_ppo().credit(table)
    close(credit.advantages, [0.15, 0.6, 0.6, 0.6])
    close(credit.returns, [0.35, 1.0, math.nan, math.nan])


def test_turn_ppo_can_read_the_critic_at_the_last_token() -> None:
    table = with_critic(turn_table([episode([0, 1], tokens=[1, 3])]), [0.2, 9], [0.2, 9, 9, 0.4], [0.0])
    credit = turn_ppo(value_position="turn_end").credit(table)
    close(credit.advantages, [0.15, 0.6, 0.6, 0.6])
    close(credit.returns, [0.35, math.nan, math.nan, 1.0])


def test_a_turn_without_tokens_stays_in_the_chain_of_turns() -> None:
    # r [0, 1, 0], the middle turn has no token; gamma .5, lam 1: A = discounted return - V.
    table = with_critic(turn_table([episode([0, 1, 0], tokens=[1, 0, 1])]), [0.2, 0.7, 0.4], [0.2, 0.4], [0.0])
    close(turn_ppo(lam=1.0).credit(table).advantages, [0.5 - 0.2, 0 - 0.4])
    lost = with_critic(turn_table([episode([0, 0], tokens=[1, 1])]), [0.2, 0.4], [0.2, 0.4], [0.0])
    assert float(turn_ppo(lam=1.0).credit(lost).advantages[0]) == pytest.approx(-0.2)


def test_turn_ppo_whitens_each_turn_once() -> None:
    table = with_critic(turn_table([episode([0, 1, 5], tokens=[1, 9, 0])]), [0.2, 0.4, 0], [0.2] + [0.4] * 9, [0.0])
    plain, whitened = turn_ppo().credit(table), turn_ppo(whiten=True).credit(table)
    expected = F.whiten(plain.advantages[:2])
    torch.testing.assert_close(whitened.advantages, expected[table.to_tokens(tensor([0, 1, 2]))])


def test_an_invalid_action_lowers_the_reward_of_its_turn() -> None:
    table = with_critic(turn_table([episode([0, 1], invalid=[1])]), [0.0] * 2, [0.0] * 2, [0.0])
    for name in ("ppo", "turn_ppo"):
        config = {"gamma": 1.0, "lam": 0.0, "whiten": False, "invalid_penalty": 0.1}
        close(build(name, {name: config}).credit(table).advantages, [0, 0.9])


# REINFORCE


@pytest.mark.parametrize(
    ("ddof", "expected"),
    [
        # Section 8: G = [.81, .9, 1, -.9, -1], mean .162, deviation .910481 (population) or 1.017949 (sample).
        (0, [0.711712, 0.810560, 0.920392, -1.166416, -1.276248]),
        (1, [0.636574, 0.724987, 0.823224, -1.043274, -1.141511]),
    ],
)
def test_reinforce_by_hand(ddof: int, expected: list[float]) -> None:
    table = turn_table([episode([0, 0, 1], tokens=[2, 1, 3]), episode([0, -1])])
    close(per_turn(table, build("reinforce", {"reinforce": {"ddof": ddof}}).credit(table)), expected)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("rewards", [[[1.0]], [[1.0], [1.0]]])
def test_one_turn_or_equal_returns_give_zero(rewards: list[list[float]], ddof: int) -> None:
    table = turn_table([episode(r) for r in rewards])
    assert not build("reinforce", {"reinforce": {"ddof": ddof}}).credit(table).advantages.any()


def test_the_critics_columns_may_be_single_precision() -> None:
    """The critic is a network; rewards are doubles, and mixing them must not lower the precision of returns."""
    table = turn_table([episode([1 / 3, 1 / 7])])
    values = torch.zeros(2, dtype=torch.float32)
    for name in ("ppo", "turn_ppo"):
        credit = build(name, {name: {"gamma": 1.0, "lam": 1.0, "whiten": False}}).credit(
            replace(table, turn_value=values, token_value=values, final_value=values[:1])
        )
        assert credit.advantages.dtype == torch.float64
        close(credit.advantages, [1 / 3 + 1 / 7, 1 / 7], 1e-15)
