"""Credit in games between seats: baselines of roles, statistics of agents, one critic for all seats."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build, check_group_size
from turngym.trainers.algorithms.mappo import MAPPO
from turngym.trainers.algorithms.rae import RAE
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import turn_table

torch.set_num_threads(1)


def double(values: object) -> Tensor:
    return tensor(values, dtype=torch.float64)


def close(found: Tensor, expected: object, atol: float = 1e-6) -> None:
    torch.testing.assert_close(found.detach().double(), double(expected), atol=atol, rtol=0, equal_nan=True)


def game(
    rewards: Sequence[float],
    seat: int = 0,
    role: str = "",
    group: int = 0,
    joints: Sequence[str] = (),
    end: str = "terminated",
    env_id: str = "duel",
) -> Trajectory:
    turns = [
        Turn(
            "",
            "",
            "",
            completion_ids=(1, 2),
            logprobs=(-1.0, -1.0),
            reward=reward,
            agent=f"player_{seat}",
            columns={"joint_view": joint} if joint else {},
        )
        for reward, joint in zip(rewards, joints or [""] * len(rewards), strict=True)
    ]
    return Trajectory(
        EpisodeSpec(0, 0, group),
        env_id=env_id,
        turns=turns,
        terminated=end == "terminated",
        truncated=end == "truncated",
        role=role,
        columns={"final_joint_view": "the end"} if joints else {},
    )


def by_episode(algorithm: Any, trajectories: Sequence[Trajectory]) -> Tensor:
    """The advantage of each episode, all of whose tokens must have the same."""
    table = turn_table(trajectories)
    advantages = algorithm.credit(table).advantages
    episode = table.episode[table.token_turn]
    found = torch.stack([advantages[episode == e] for e in range(len(trajectories))])
    assert bool((found == found[:, :1]).all())
    return found[:, 0]


def moved_on(algorithm: Any, trajectories: Sequence[Trajectory]) -> Tensor:
    """The same, with the state moved on as after an update."""
    found = by_episode(algorithm, trajectories)
    algorithm.update_state(trajectories, algorithm.credit(turn_table(trajectories)))
    return found


# Roles in the turn table.


def test_a_role_is_named_by_its_environment_and_by_the_seat_where_a_game_has_no_roles() -> None:
    table = turn_table([game([1], role="seer"), game([1], seat=1), game([1], role="seer", env_id="other")])
    assert table.role_names == ("duel/seer", "duel/player_1", "other/seer")
    assert table.role.tolist() == [0, 1, 2]
    assert table.agent.tolist() == [0, 1, 0]


# RAE.


def test_rae_gives_the_worked_example_of_the_reference() -> None:
    """Rewards +1, +1, -1 of one role from baseline 0 with decay 0.95."""
    algorithm = build("rae")
    close(moved_on(algorithm, [game([1]), game([1]), game([-1])]), [1, 0.95, -1.0975])
    assert isinstance(algorithm, RAE)
    assert algorithm.baselines == {"duel/player_0": pytest.approx(0.042625, abs=1e-12)}


def test_rae_keeps_roles_and_games_apart() -> None:
    algorithm = build("rae", {"rae": {"decay": 0.5}})
    episodes = [game([1], seat=0), game([-1], seat=1), game([1], seat=0), game([8], env_id="other")]
    close(by_episode(algorithm, episodes), [1, -1, 0.5, 8])


def test_no_baseline_of_rae_holds_a_result_of_the_same_game() -> None:
    """Two villagers share a result: the second one's baseline held the first one's."""
    algorithm = build("rae", {"rae": {"decay": 0.5}})
    played = [game([1.0], seat, role, group) for group in (0, 1) for seat, role in enumerate(["villager", "villager"])]
    close(by_episode(algorithm, played), [1.0, 1.0, 0.25, 0.25])
    replayed = [game([1.0], 0, "villager", 0) for _ in range(3)]
    close(by_episode(algorithm, replayed), [1.0, 0.5, 0.25])  # one seat again: another game of the group


def test_rae_sums_the_rewards_of_all_turns_and_charges_invalid_ones() -> None:
    algorithm = build("rae", {"rae": {"invalid_penalty": 0.25}})
    episode = game([0.5, 0, -1])
    episode.turns[1] = replace(episode.turns[1], action_is_valid=False)
    close(by_episode(algorithm, [episode]), [-0.75])


def test_rae_moves_its_baselines_at_the_end_of_an_iteration_only() -> None:
    algorithm = build("rae")
    episodes = [game([1]), game([-3])]
    first = by_episode(algorithm, episodes)
    close(moved_on(algorithm, episodes), first.tolist())
    assert by_episode(algorithm, episodes)[0] != first[0]


def test_rae_goes_on_from_its_state() -> None:
    algorithm, resumed = build("rae+epo"), build("rae+epo")
    moved_on(algorithm, [game([1]), game([-2], seat=1)])
    algorithm.observe({"loss/entropy_nested": 0.5})
    resumed.load_state(json.loads(json.dumps(algorithm.state())))
    more = [game([1], seat=1), game([1])]
    close(by_episode(resumed, more), by_episode(algorithm, more).tolist(), atol=0)


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_rae_refuses_a_decay_outside_of_0_to_1(decay: float) -> None:
    with pytest.raises(ConfigError, match=r"decay must be from 0 to 1"):
        build("rae", {"rae": {"decay": decay}})


def test_a_constant_return_is_worth_nothing_in_the_end_whatever_the_seat() -> None:
    """The reason for baselines of roles: with one baseline the first seat's advantages stay positive for ever."""
    episodes = [game([0.5 - seat], seat=seat) for _ in range(400) for seat in (0, 1)]
    assert by_episode(build("rae"), episodes)[-2:].abs().max() < 1e-6
    pooled = [game([0.5 - seat], role="anybody") for _ in range(400) for seat in (0, 1)]
    assert by_episode(build("rae"), pooled)[-2:].abs().min() > 0.4


# Dr. MAS.

TWO_AGENTS = [game([1], 0), game([0], 0), game([1], 1), game([1], 1), game([0], 1)]


def test_dr_mas_gives_the_worked_example_of_the_reference() -> None:
    close(by_episode(build("dr_mas"), TWO_AGENTS), [0.707106, -0.707106, 0.577349, 0.577349, -1.154699])


def test_one_normalisation_for_all_agents_is_grpo_and_gives_other_numbers() -> None:
    close(by_episode(build("grpo"), TWO_AGENTS), [0.730295, -1.095443, 0.730295, 0.730295, -1.095443])


def test_dr_mas_never_mixes_groups() -> None:
    apart = [game([r], seat, group=g) for g in (0, 1) for seat in (0, 1) for r in ([1, 0], [5, 7])[g]]
    half = math.sqrt(0.5)
    expected = [half, -half, half, -half, -half, half, -half, half]
    close(by_episode(build("dr_mas"), apart), expected, atol=1e-5)


def test_dr_mas_may_compare_all_seats_of_a_role() -> None:
    villagers = [game([r], seat, "villager") for seat, r in enumerate([1.0, 0.0, 1.0])]
    close(by_episode(build("dr_mas", {"dr_mas": {"by": "role"}}), villagers), [0.577349, -1.154699, 0.577349])
    alone = build("dr_mas").credit(turn_table(villagers))
    assert alone.metrics["groups_shrunk_to_one"] == 3
    assert bool((alone.advantages == 0).all())


def test_dr_mas_counts_trajectories_once_or_turns() -> None:
    """Four turns of return 1 and one of return 0: counted as trajectories the mean is 1/2, as turns 4/5."""
    episodes = [game([1, 0, 0, 0]), game([0])]
    plain: dict[str, Any] = {"scale_by_std": False}
    close(by_turn := by_turn_advantages("trajectories", plain, episodes), [0.5] * 4 + [-0.5])
    assert len(by_turn) == 5
    close(by_turn_advantages("rows", plain, episodes), [0.2] * 4 + [-0.8])


def by_turn_advantages(over: str, settings: dict[str, Any], episodes: Sequence[Trajectory]) -> Tensor:
    table = turn_table(episodes)
    credit = build("dr_mas", {"dr_mas": {"over": over, **settings}}).credit(table)
    return credit.advantages[table.first_tokens()]


def test_dr_mas_needs_groups_and_knows_two_ways_to_compare() -> None:
    with pytest.raises(ConfigError, match=r"dr_mas compares the episodes of a group, got group_size=1"):
        check_group_size(build("dr_mas"), 1)
    with pytest.raises(ConfigError, match=r"by must be one of agent, role; got 'seat'"):
        build("dr_mas", {"dr_mas": {"by": "seat"}})


def test_pairs_of_keys_are_equal_where_both_are() -> None:
    keys = F.joint_keys(tensor([0, 1, 0, 1, 0]), tensor([2, 0, 2, 1, 3])).tolist()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 4 and max(keys) == 3
    assert F.joint_keys(torch.zeros(0).long(), torch.zeros(0).long()).tolist() == []


# MAPPO.


def mappo(**settings: Any) -> MAPPO:
    algorithm = build("mappo", {"mappo": {"whiten": False, "gamma": 1.0, "lam": 1.0, **settings}})
    assert isinstance(algorithm, MAPPO)
    return algorithm


def with_values(algorithm: MAPPO, values: dict[str, float]) -> MAPPO:
    """A critic that says what the test wants."""
    algorithm._read = lambda views: tensor([values[view] for view in views])  # type: ignore[method-assign]
    return algorithm


def first_tokens(algorithm: MAPPO, trajectories: Sequence[Trajectory]) -> tuple[Tensor, Tensor]:
    table = turn_table(trajectories)
    credit = algorithm.credit(table)
    algorithm.update_state(trajectories, credit)
    target = credit.columns["joint_target"]
    assert isinstance(target, Tensor)
    return credit.advantages[table.first_tokens()], target[table.first_tokens()]


def test_mappo_gives_the_worked_example_of_the_reference_to_every_seat() -> None:
    seats = [game([0, 1], seat, joints=["a", "b"]) for seat in (0, 1)]
    advantages, _ = first_tokens(with_values(mappo(), {"a": 0.5, "b": 0.5}), seats)
    close(advantages, [0.5, 0.5, 0.5, 0.5])


def test_mappo_bootstraps_from_the_joint_view_after_a_game_that_was_cut_off() -> None:
    values = {"a": 0.5, "b": 0.25, "the end": 2.0}
    cut = [game([0, 1], joints=["a", "b"], end="truncated")]
    close(first_tokens(with_values(mappo(), values), cut)[0], [2.5, 2.75])
    close(first_tokens(with_values(mappo(bootstrap_truncated=False), values), cut)[0], [0.5, 0.75])


def test_mappo_denormalises_values_before_it_estimates_and_normalises_its_targets() -> None:
    algorithm = mappo(value_decay=0.0)
    episodes = [game([0, 4], joints=["a", "b"]), game([2, 0], joints=["a", "b"])]
    _, targets = first_tokens(with_values(algorithm, {"a": 0.0, "b": 0.0}), episodes)
    returns = double([4, 4, 2, 0])
    close(targets, ((returns - returns.mean()) / returns.std(correction=0)).tolist())
    algorithm.observe({})
    advantages, _ = first_tokens(algorithm, episodes)
    close(advantages, (returns - returns.mean()).tolist())


def test_mappo_refuses_a_batch_without_joint_views() -> None:
    with pytest.raises(ConfigError, match=r"mappo needs what all seats together know"):
        mappo().credit(turn_table([game([1])]))


def inputs_of(algorithm: MAPPO, trajectories: Sequence[Trajectory]) -> LossInputs:
    """The whole batch as one micro-batch, a row an episode."""
    table = turn_table(trajectories)
    credit = algorithm.credit(table)
    index = torch.arange(len(table.token_turn)).reshape(len(trajectories), -1)
    shape = (len(trajectories), len(table.token_turn) // len(trajectories))
    weights = {n: F.loss_weights(table, n).reshape(shape).float() for n in algorithm.normalisations}
    logprobs = torch.full(shape, -1.0, requires_grad=True)
    return LossInputs(
        logprobs,
        torch.full(shape, -1.0),
        credit.advantages.reshape(shape).float(),
        torch.ones(shape, dtype=torch.bool),
        table.token_turn.reshape(shape),
        weights,
        entropy=torch.ones(shape),
        columns={name: lay_out_column(column, index) for name, column in credit.columns.items()},
    )


def test_the_value_loss_of_mappo_is_half_the_squared_error_of_a_turn() -> None:
    algorithm = mappo(value_clip=0.0, value_decay=0.0)
    output = algorithm.loss(inputs_of(algorithm, [game([0, 4], joints=["a", "b"]), game([2, 0], joints=["a", "c"])]))
    returns = double([4, 4, 2, 0])
    targets = (returns - returns.mean()) / returns.std(correction=0)
    term = output.terms["value"]
    weights = inputs_of(algorithm, [game([0, 4], joints=["a", "b"]), game([2, 0], joints=["a", "c"])]).weights
    close((weights[term.over] * term.values).sum(), float((targets**2).mean() / 2))


def test_the_critic_of_mappo_learns_what_each_joint_view_is_worth_and_the_policy_gets_no_gradient_from_it() -> None:
    algorithm = mappo(value_clip=0.0)
    episodes = [game([r], joints=[view]) for view, r in (("rich man", 2.0), ("poor man", -2.0), ("no man", 0.0))]
    optimizer = torch.optim.Adam(algorithm.modules()["joint_critic"].parameters(), 0.01)
    inputs = inputs_of(algorithm, episodes)
    for _ in range(200):
        optimizer.zero_grad()
        term = algorithm.loss(inputs).terms["value"]
        (inputs.weights[term.over] * term.values).sum().backward()
        optimizer.step()
    assert inputs.logprobs.grad is None or not inputs.logprobs.grad.any()
    algorithm.update_state(episodes, algorithm.credit(turn_table(episodes)))
    values = algorithm.moments.restore(algorithm._read(("rich man", "poor man", "no man")))
    close(values, [2.0, -2.0, 0.0], atol=0.05)


def test_the_critic_of_mappo_may_read_whose_turn_it_values() -> None:
    """On one joint view one side wins what the other loses: without the role nothing can be known."""
    views = ["night", "day"]
    episodes = [game([0, 1], role="villager", joints=views), game([0, -1], 1, role="werewolf", joints=views)]

    def explained(by_role: bool) -> float:
        algorithm = mappo(value_clip=0.0, value_by_role=by_role)
        optimizer = torch.optim.Adam(algorithm.modules()["joint_critic"].parameters(), 0.01)
        for _ in range(60):
            inputs = inputs_of(algorithm, episodes)
            optimizer.zero_grad()
            term = algorithm.loss(inputs).terms["value"]
            (inputs.weights[term.over] * term.values).sum().backward()
            optimizer.step()
        credit = algorithm.credit(turn_table(episodes))
        algorithm.update_state(episodes, credit)
        return float(algorithm.credit(turn_table(episodes)).metrics["explained_variance"])

    assert explained(True) > 0.9 > 0.1 > explained(False)


def test_mappo_values_the_end_of_a_game_that_was_cut_off_for_the_same_role() -> None:
    name = turn_table([game([0], role="seer", joints=["a"])]).role_names[0]
    values = {f"{name}|a": 0.5, f"{name}|the end": 2.0}
    cut = [game([1], role="seer", joints=["a"], end="truncated")]
    close(first_tokens(with_values(mappo(value_by_role=True), values), cut)[0], [2.5])


def test_mappo_goes_on_from_its_state() -> None:
    algorithm, resumed = mappo(), mappo()
    episodes = [game([3.0], joints=["a"]), game([1.0], joints=["b"])]
    algorithm.update_state(episodes, algorithm.credit(turn_table(episodes)))
    resumed.load_state(json.loads(json.dumps(algorithm.state())))
    assert resumed.moments == algorithm.moments != F.Moments()
