"""Our credit and losses inside verl's own functions, against our numbers on the same episodes."""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small import play, small_model
from torch import Tensor

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import LossInputs, Need
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.core.weights import loss_weights

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="verl")),
        reason="verl is in .venvs/verl only: run make test-integration",
    ),
]


@pytest.fixture(scope="module")
def played() -> list[Trajectory]:
    """Two groups of episodes of different lengths, with rewards at several turns and invalid actions among them."""
    found = play(small_model(), "conversation", max_turns=4)
    for number, trajectory in enumerate(found):
        kept = trajectory.turns[: 1 + number % 4]
        for turn, each in enumerate(kept):
            each.reward = 0.25 * ((3 * number + turn) % 5)
        trajectory.turns = kept
        trajectory.truncated, trajectory.terminated, trajectory.truncation_reason = bool(number % 3), not number % 3, ""
    assert any(not turn.action_is_valid for each in found for turn in each.turns)
    return found


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    if any(importlib.metadata.distributions(name="verl")):
        from turngym.trainers.integrations.verl_credit import register_all

        register_all()
        register_all()  # a second time changes nothing


def batch_of(episodes: Sequence[Trajectory], faulted: Sequence[int] = ()) -> Any:
    """Return what verl's trainer holds before it computes advantages: two tokens of the environment between turns."""
    from verl import DataProto

    width = 2 + max(sum(len(turn.completion_ids) + 2 for turn in each.turns) for each in episodes)
    mask, old = torch.zeros(len(episodes), width, dtype=torch.long), torch.zeros(len(episodes), width)
    rewards = torch.zeros(len(episodes), width)
    for row, each in enumerate(episodes):
        at = 0
        for turn in each.turns:
            count = len(turn.completion_ids)
            mask[row, at : at + count] = 1
            old[row, at : at + count] = torch.tensor(turn.logprobs)
            at += count + 2
        rewards[row, at - 3] = 0.0 if row in faulted else each.reward_sum
        mask[row] *= row not in faulted

    def objects(values: Any) -> Any:
        return np.fromiter(values, object)

    columns = {
        "uid": objects(f"group {each.spec.group}" for each in episodes),
        "turn_scores": objects([turn.reward for turn in each.turns] for each in episodes),
        "turn_anchors": objects([turn.anchor for turn in each.turns] for each in episodes),
        "turn_valid": objects([turn.action_is_valid for turn in each.turns] for each in episodes),
        "truncated": np.array([float(each.truncated) for each in episodes]),
        "faulted": np.array([float(row in faulted) for row in range(len(episodes))]),
    }
    tensors = {"response_mask": mask, "token_level_rewards": rewards, "old_log_probs": old, "ref_log_prob": 0.9 * old}
    return DataProto.from_dict(tensors, non_tensors=columns)


def table_of(episodes: Sequence[Trajectory]) -> TurnTable:
    """Return our table of the same episodes, with the same reference."""
    table = turn_table(episodes)
    return replace(table, token_reference_logprob=0.9 * table.token_logprob)


def advantages_by_verl(data: Any, name: str, **turngym: Any) -> Any:
    """Let verl's trainer compute them, through the name that it calls."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo import ray_trainer

    config = OmegaConf.create({"adv_estimator": name, "gamma": 1.0, "lam": 1.0, "turngym": turngym})
    return ray_trainer.compute_advantage(data, adv_estimator=name, gamma=1.0, lam=1.0, num_repeat=4, config=config)


def tokens_of(data: Any, name: str) -> Tensor:
    found: Tensor = data.batch[name][data.batch["response_mask"].bool()]
    return found.double()


def with_values(table: TurnTable, tokens: Tensor) -> TurnTable:
    firsts = tokens[table.first_tokens()]
    lasts = torch.cumsum(table.turns_per_episode, 0) - 1
    ended = table.episode_sum(table.terminated.double()) > 0
    return table.with_values(firsts, tokens, torch.where(ended, 0.0, firsts[lasts]))


@pytest.mark.parametrize("name", ["gigpo", "grpo", "dr_grpo", "rloo", "reinforce", "hgpo", "gspo"])
def test_advantages_of_groups_are_ours(played: list[Trajectory], name: str) -> None:
    data = advantages_by_verl(batch_of(played), f"turngym_{name}")
    expected = build(name).credit(table_of(played)).advantages
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(tokens_of(data, "advantages"), expected.double(), rtol=0, atol=1e-6)
    assert not data.batch["advantages"][~data.batch["response_mask"].bool()].any()
    torch.testing.assert_close(data.batch["returns"], data.batch["advantages"])


@pytest.mark.parametrize("name", ["turn_ppo", "ppo", "bi_level_gae"])
def test_advantages_with_a_critic_are_ours(played: list[Trajectory], name: str) -> None:
    data, table = batch_of(played), table_of(played)
    values = torch.randn(data.batch["response_mask"].shape, generator=torch.Generator().manual_seed(1))
    data.batch["values"] = values
    found = advantages_by_verl(data, f"turngym_{name}", **{name: {"gamma": 0.9, "lam": 0.8}})
    tokens = values[data.batch["response_mask"].bool()].double()
    credit = build(name, {name: {"gamma": 0.9, "lam": 0.8}}).credit(with_values(table, tokens))
    torch.testing.assert_close(tokens_of(found, "advantages"), credit.advantages.double(), rtol=0, atol=1e-5)
    assert credit.returns is not None
    trained = ~credit.returns.isnan()
    returns = tokens_of(found, "returns")
    torch.testing.assert_close(returns[trained], credit.returns[trained].double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(returns[~trained], tokens[~trained])  # not trained there: as they were


def test_a_faulted_episode_is_in_no_baseline(played: list[Trajectory]) -> None:
    """verl's own estimators compare the others of its group with a return of 0."""
    data = advantages_by_verl(batch_of(played, faulted=[1, 6]), "turngym_gigpo")
    others = [each for row, each in enumerate(played) if row not in (1, 6)]
    expected = build("gigpo").credit(table_of(others)).advantages
    torch.testing.assert_close(tokens_of(data, "advantages"), expected.double(), rtol=0, atol=1e-6)
    assert not data.batch["advantages"][[1, 6]].any()


def test_penalties_of_verl_stay_in_the_rewards(played: list[Trajectory]) -> None:
    """With the divergence from a reference in the rewards, each turn carries its own tokens' part."""
    data = batch_of(played)
    penalties = 0.1 * torch.rand(data.batch["response_mask"].shape) * data.batch["response_mask"]
    data.batch["token_level_rewards"] = data.batch["token_level_rewards"] - penalties
    lower, table = [], turn_table(played)
    by_turn = torch.zeros(table.num_turns).index_add_(
        0, table.token_turn, penalties[data.batch["response_mask"].bool()]
    )
    number = 0
    for each in played:
        turns = [replace(turn, reward=turn.reward - float(by_turn[number + k])) for k, turn in enumerate(each.turns)]
        lower.append(replace(each, turns=turns))
        number += len(turns)
    expected = build("reinforce").credit(table_of(lower)).advantages
    found = advantages_by_verl(data, "turngym_reinforce")
    torch.testing.assert_close(tokens_of(found, "advantages"), expected.double(), rtol=0, atol=1e-5)


def test_what_a_batch_lacks_is_named(played: list[Trajectory]) -> None:
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    data = batch_of(played)
    given = {name: data.batch[name] for name in ("token_level_rewards", "response_mask")}
    with pytest.raises(ConfigError, match=r"^gigpo compares turns .* train with trainer\.use_v1=False"):
        get_adv_estimator_fn("turngym_gigpo")(**given, index=data.non_tensor_batch["uid"], config=None)
    with pytest.raises(ConfigError, match=r"^turn_ppo needs a critic: pass critic\.enable=True"):
        advantages_by_verl(data, "turngym_turn_ppo")
    data.non_tensor_batch["turn_scores"][0] = [1.0] * 9
    with pytest.raises(ConfigError, match="runs of sampled tokens and 9 turn_scores"):
        advantages_by_verl(data, "turngym_grpo")


def test_without_the_batch_turns_are_runs_of_sampled_tokens(played: list[Trajectory]) -> None:
    """What verl's newer trainer hands over is enough for methods that need neither anchors nor values."""
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    data = batch_of(played)
    rewards = torch.zeros_like(data.batch["token_level_rewards"])
    for row, each in enumerate(played):
        at = -2
        for turn in each.turns:
            at += len(turn.completion_ids) + 2
            rewards[row, at - 1] = turn.reward  # where TurnOutput puts it
    estimate = get_adv_estimator_fn("turngym_grpo")
    given = {"response_mask": data.batch["response_mask"], "index": data.non_tensor_batch["uid"], "config": None}
    found, _ = estimate(token_level_rewards=rewards, **given)
    expected = build("grpo").credit(table_of(played)).advantages
    torch.testing.assert_close(found[data.batch["response_mask"].bool()].double(), expected.double(), rtol=0, atol=1e-6)


def test_verls_own_estimators_are_as_they_were(played: list[Trajectory]) -> None:
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    data = advantages_by_verl(batch_of(played), "grpo")
    given = (data.batch["token_level_rewards"], data.batch["response_mask"], data.non_tensor_batch["uid"])
    torch.testing.assert_close(data.batch["advantages"], compute_grpo_outcome_advantage(*given)[0])


LOSSES = {
    "token": ("grpo", "token"),
    "turn_product": ("grpo", "turn_product"),
    "turn_geometric": ("grpo", "turn_geometric"),
    "turn_geometric_by_token": ("grpo", "turn_geometric_by_token"),
    "turn_ppo": ("turn_ppo", "turn_product"),
}
AVERAGES = {"token-mean": "token", "seq-mean-token-mean": "trajectory", "seq-mean-token-sum": "trajectory_sum"}


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("name", LOSSES)
def test_policy_losses_and_their_gradients_are_ours(played: list[Trajectory], name: str, average: str) -> None:
    """Value and gradient through the function that verl's actor calls, against ours over the turn table."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import FSDPActorConfig

    data, table = batch_of(played), turn_table(played)
    mask = data.batch["response_mask"].bool()
    generator = torch.Generator().manual_seed(2)
    advantages = torch.randn(mask.shape, generator=generator) * mask
    new = (data.batch["old_log_probs"] + 0.3 * torch.randn(mask.shape, generator=generator)).requires_grad_()
    actor = FSDPActorConfig(
        strategy="fsdp", ppo_micro_batch_size_per_gpu=1, rollout_n=1, clip_ratio_low=0.1, clip_ratio_high=0.3
    )
    loss, metrics = get_policy_loss_fn(f"turngym_{name}")(
        old_log_prob=data.batch["old_log_probs"], log_prob=new, advantages=advantages, response_mask=mask,
        loss_agg_mode=average, config=actor, rollout_is_weights=None,
    )  # fmt: skip
    (gradient,) = torch.autograd.grad(loss, new)
    kind, ratio = LOSSES[name]
    method = build(kind, {kind: {"ratio": ratio, "clip_low": 0.1, "clip_high": 0.3, "dual_clip": 3.0, "kl_coef": 0.0}})
    ours = new.detach()[mask][None].requires_grad_()
    weights = loss_weights(table, AVERAGES[average]).float()[None]
    inputs = LossInputs(
        ours, data.batch["old_log_probs"][mask][None], advantages[mask][None], torch.ones_like(ours, dtype=torch.bool),
        table.token_turn[None], {},
    )  # fmt: skip
    surrogate = method.surrogate(inputs)  # type: ignore[attr-defined]
    expected = (weights * surrogate.policy.loss).sum()
    (own,) = torch.autograd.grad(expected, ours)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient[mask], own[0])
    assert 0 < metrics["actor/pg_clipfrac"] == pytest.approx(float(surrogate.policy.clipped.float().mean()))


def test_methods_that_gather_in_their_own_way_or_change_others_are_not_registered() -> None:
    from turngym.trainers.integrations.verl_credit import estimators, policy_losses

    names = set(estimators())
    assert {"gigpo", "turn_ppo", "grpo", "ppo", "rloo", "hgpo"} <= names
    assert not names & {"vine_ppo", "arpo", "dapo", "remax", "epo", "s_ppo", "turn_is", "mappo"}
    assert all(Need.SNAPSHOTS not in build(name).needs for name in names)
    assert policy_losses() == [f"turngym_{name}" for name in LOSSES]


def test_verl_registers_them_where_the_environment_names_the_plugin() -> None:
    """As from a command line of verl: a fresh process finds estimators, losses and the trainer's call."""
    code = (
        "from verl.trainer.ppo import core_algos, ray_trainer\n"
        "print(core_algos.get_adv_estimator_fn('turngym_gigpo') is not None,"
        " core_algos.get_policy_loss_fn('turngym_turn_geometric') is not None,"
        " ray_trainer.compute_advantage.__module__)"
    )
    named = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "turngym.trainers.integrations.verl_plugin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=named, check=False)
    assert done.stdout.split() == ["True", "True", "turngym.trainers.integrations.verl_credit"], done.stderr


def test_the_loop_writes_the_reward_of_each_turn_at_its_end() -> None:
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics

    from turngym.trainers.integrations.verl import TurnOutput

    given: dict[str, Any] = {"prompt_ids": [1], "response_ids": [5, 6, 7, 8, 9], "response_mask": [1, 1, 0, 0, 1]}
    scores = {"turn_scores": [0.5, 1.0]}
    found = TurnOutput(**given, reward_score=1.5, metrics=AgentLoopMetrics(), extra_fields=scores).as_dict()
    assert found["rm_scores"].tolist() == [0, 0.5, 0, 0, 1.0]
    broken = TurnOutput(**given, reward_score=0.0, metrics=AgentLoopMetrics(), extra_fields={"turn_scores": [0.5]})
    assert broken.as_dict()["rm_scores"].tolist() == [0] * 5  # a fault: nothing counts


def test_verl_takes_every_machine_for_one_with_a_gpu() -> None:
    """Why no whole step of its trainer is run here: its engines move all they have to this device."""
    from verl.utils.device import get_device_name

    assert not torch.cuda.is_available() and get_device_name() == "cuda"
    with pytest.raises((AssertionError, RuntimeError), match=r"(?i)cuda"):
        torch.zeros(1).to(get_device_name())
