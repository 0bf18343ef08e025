"""Credit assignment against the vectors of verl, verl-agent and the released code of HGPO, in both precisions."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from oracle import Vector, every
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.gigpo import step_returns
from turngym.trainers.core.turn_table import TurnTable, turn_table


def turn(reward: float, tokens: int, anchor: str = "") -> Turn:
    return Turn("", anchor, "", completion_ids=(1,) * tokens, logprobs=(-1.0,) * tokens, reward=reward)


def in_precision(table: TurnTable, vector: Vector) -> TurnTable:
    return replace(table, reward=table.reward.to(vector.dtype))


def outcome_table(vector: Vector, baselines: Sequence[float] = ()) -> TurnTable:
    """One episode of one turn for each row: its tokens are those under the mask, its reward the sum of the row's."""
    names = sorted(set(vector.get("index") or ["a"]))
    lengths = vector.mask().sum(-1).tolist()
    episodes = []
    for row, (rewards, length) in enumerate(zip(vector["token_level_rewards"], lengths, strict=True)):
        group = names.index((vector.get("index") or ["a"] * len(lengths))[row])
        greedy = baselines[row] if baselines else float("nan")
        spec = EpisodeSpec(row, 0, group)
        episodes.append(
            Trajectory(spec, turns=[turn(sum(rewards), length)], terminated=True, columns={"greedy_return": greedy})
        )
    return in_precision(turn_table(episodes), vector)


def check(vector: Vector, table: TurnTable, name: str, column: str = "advantages", **settings: Any) -> None:
    """What an algorithm credits the tokens with, row after row, and nothing where the mask is 0."""
    mask = vector.mask()
    found = torch.zeros(mask.shape, dtype=vector.dtype)
    found[mask] = build(name, {name: settings}).credit(table).advantages
    vector.close(found, vector[column])


@every("verl_grpo")
def test_grpo(vector: Vector) -> None:
    scale = vector.settings["norm_adv_by_std_in_grpo"]
    check(vector, outcome_table(vector), "grpo", singleton="raw", scale_by_std=scale)
    if not scale:
        check(vector, outcome_table(vector), "dr_grpo", singleton="raw")


@every("verl_rloo")
def test_rloo(vector: Vector) -> None:
    check(vector, outcome_table(vector), "rloo", singleton="raw", reward_kl_coef=0.0)


@every("verl_opo")
def test_opo(vector: Vector) -> None:
    check(vector, outcome_table(vector), "opo", singleton="raw")


@every("verl_remax")
def test_remax(vector: Vector) -> None:
    """verl leaves the bare return on observations inside a row, which enter no loss; they are not compared."""
    expected = vector.real(vector["advantages"]).masked_fill(~vector.mask(), 0.0).tolist()
    whole = vector.like({**vector, "advantages": expected})
    check(whole, outcome_table(vector, vector["reward_baselines"]), "remax", reward_kl_coef=0.0)


@every("verl_reinforce_pp")
def test_reinforce_pp(vector: Vector) -> None:
    """Every token under the mask is a turn with the token's reward; rewards on other tokens are lost in verl."""
    episodes = []
    for row, (rewards, mask) in enumerate(zip(vector["token_level_rewards"], vector.mask().tolist(), strict=True)):
        turns = [turn(reward, 1) for reward, here in zip(rewards, mask, strict=True) if here]
        episodes.append(Trajectory(EpisodeSpec(row, 0, row), turns=turns, terminated=True))
    gamma = float(vector.settings["config"].rpartition(" ")[2].rstrip("}"))
    check(vector, in_precision(turn_table(episodes), vector), "reinforce_pp", gamma=gamma, reward_kl_coef=0.0)


@every("verl_reinforce_pp_baseline")
def test_reinforce_pp_baseline(vector: Vector) -> None:
    check(vector, outcome_table(vector), "reinforce_pp_baseline", singleton="raw")


@every("verl_gae")
def test_gae(vector: Vector) -> None:
    mask, values = vector.mask(), vector.real(vector["values"])
    rewards = vector.real(vector["token_level_rewards"])
    advantages, returns = F.token_gae(rewards, values, mask, gamma=vector["gamma"], lam=vector["lam"])
    vector.close(F.whiten(advantages, mask), vector["advantages_whitened"])
    vector.close(returns, vector["returns"])


# Step rows: one row a turn, several rows of one trajectory


def step_table(vector: Vector) -> TurnTable:
    episodes = []
    rows = range(len(vector["traj_index"]))
    for _, members in itertools.groupby(rows, key=lambda row: vector["traj_index"][row]):
        kept = list(members)
        turns = [
            turn(vector["step_reward"][row], int(sum(vector["response_mask"][row])), vector["anchor_obs"][row])
            for row in kept
        ]
        group = sorted(set(vector["index"])).index(vector["index"][kept[0]])
        episodes.append(Trajectory(EpisodeSpec(kept[0], 0, group), turns=turns, terminated=True))
    return in_precision(turn_table(episodes), vector)


def of_turns(vector: Vector, table: TurnTable, name: str, **settings: Any) -> Tensor:
    """The credit of each row's tokens, laid out as the vector has it."""
    found = torch.zeros(vector.mask().shape, dtype=vector.dtype)
    found[vector.mask()] = build(name, {name: settings}).credit(table).advantages
    return found


@every("gigpo")
def test_gigpo(vector: Vector) -> None:
    table, settings = step_table(vector), vector.settings
    chosen = {"mode": settings["mode"], "gamma": settings["gamma"], "singleton": "raw"}
    returns = step_returns(table, gamma=settings["gamma"])
    vector.close(returns, vector["step_discounted_returns"])
    for over, column in (
        ("rows", "episode_advantages_cross_all_steps"),
        ("trajectories", "episode_advantages_per_trajectory"),
    ):
        vector.close(of_turns(vector, table, "gigpo", over=over, omega=0.0, **chosen), vector[column])
    whole = of_turns(vector, table, "gigpo", over="rows", omega=settings["step_advantage_w"], **chosen)
    vector.close(whole, vector["advantages"])


@every("hgpo")
def test_hgpo(vector: Vector) -> None:
    table, settings = step_table(vector), vector.settings
    returns = step_returns(table, gamma=settings["gamma"])
    vector.close(returns, vector["step_discounted_returns"])
    found = of_turns(
        vector,
        table,
        "hgpo",
        mode=settings["mode"],
        gamma=settings["gamma"],
        history=settings["history_length"],
        alpha=settings["length_weight_alpha"],
        base_group=settings["base_group"],
        epsilon=settings["epsilon"],
        singleton="raw",
    )
    vector.close(found, vector["advantages"])
