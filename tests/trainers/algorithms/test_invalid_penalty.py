"""An invalid action costs its own turn, and nothing that its turn is compared with."""

from dataclasses import replace

import pytest
import torch
from algorithm_batches import COMPARING, VARIANTS, episodes

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.core.turn_table import TurnTable, turn_table

PENALTY = 0.1
COUNTING_IT_AS_A_REWARD = {"gdpo by trajectory", "trpa"}
"""Variants that compare valid actions as a part of the reward, or as a level."""
CHARGED = [variant for variant in [*COMPARING, "remax"] if variant not in COUNTING_IT_AS_A_REWARD]


def charging(variant: str) -> Algorithm[object]:
    name, configs = VARIANTS[variant]
    base = name.partition("+")[0]
    without_kl = {"reward_kl_coef": 0.0} if hasattr(build(base).config, "reward_kl_coef") else {}
    return build(name, {**configs, base: {**configs.get(base, {}), **without_kl, "invalid_penalty": PENALTY}})


def table_of(trajectories: list[Trajectory]) -> TurnTable:
    """Return the turn table, where the trainer's log-probabilities are those of the sampler."""
    table = turn_table(trajectories)
    same = table.token_logprob
    squares = same.exp()
    table = replace(table, token_trainer_logprob=same, token_reference_logprob=same)
    return replace(
        table, token_teacher_logprob=same, token_squares=squares, token_divergence=squares, token_other_logprob=same
    )


def failures(returns: list[float], invalid_turn: int) -> list[Trajectory]:
    """Episodes of three turns over the same states, one action of the first episode invalid."""

    def turn(episode: int, number: int) -> Turn:
        return Turn(
            "",
            f"state {number}",
            "",
            completion_ids=(1,),
            logprobs=(-1.0,),
            reward=returns[episode] if number == 2 else 0.0,
            action_is_valid=(episode, number) != (0, invalid_turn),
        )

    return [
        Trajectory(
            EpisodeSpec(e, 0, 0),
            turns=[turn(e, number) for number in range(3)],
            truncated=True,
            columns={"greedy_return": 0.0, "mixture_return": 0.0},
        )
        for e in range(len(returns))
    ]


def test_an_invalid_action_among_equal_failures_costs_only_its_own_turn() -> None:
    """Nothing else happened in the group, so no other turn may be credited for it."""
    for variant in CHARGED:
        for invalid_turn in range(3):
            credit = charging(variant).credit(table_of(failures([0.0] * 8, invalid_turn)))
            expected = torch.zeros(24, dtype=torch.float64)
            expected[invalid_turn] = -PENALTY
            torch.testing.assert_close(credit.advantages, expected, atol=1e-9, rtol=0)


def test_the_penalty_is_not_multiplied_where_returns_hardly_differ() -> None:
    """Divided by the deviation of the group, the penalty would grow without bound as the returns become equal."""
    for variant in CHARGED:
        returns = [0.5 + 1e-5 * k for k in range(8)]
        found = [charging(variant).credit(table_of(failures(returns, turn))).advantages for turn in (1, 99)]
        charged = found[0] - found[1]
        assert float(charged[1]) == pytest.approx(-PENALTY, abs=1e-9)


def test_credit_with_invalid_actions_is_credit_without_less_the_penalty_of_each() -> None:
    """Among awkward random episodes, of which one group has a single one."""
    for variant in CHARGED:
        for seed in range(2):
            played = [each for each in episodes(seed) if each.spec.group or not each.spec.episode]
            valid = [
                replace(each, turns=[replace(turn, action_is_valid=True) for turn in each.turns]) for each in played
            ]
            algorithm, table = charging(variant), table_of(played)
            difference = algorithm.credit(table).advantages - algorithm.credit(table_of(valid)).advantages
            expected = table.to_tokens(-PENALTY * (~table.is_valid).double())
            if variant != "remax":
                expected = expected.masked_fill(table.to_tokens(table.group == 0), 0.0)
            torch.testing.assert_close(difference, expected, atol=1e-9, rtol=0)


def test_valid_actions_are_a_part_of_the_reward_where_gdpo_is_told_so() -> None:
    table: TurnTable = table_of(failures([0.0] * 8, 0))
    found = build("gdpo", {"gdpo": {"weights": "valid_actions=1"}}).credit(table).advantages.reshape(8, 3)
    assert bool((found[0] < -2).all())
    assert bool((found[1:] > 0.3).all())
