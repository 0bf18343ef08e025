"""Divergence from the reference policy in the reward: what each kind of method subtracts, and how the weight adapts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from small import play, small_model
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.base.reward_kl import RewardKLConfig, RewardKLMethod
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.engine.learner import Learner, UpdateConfig

DRIFT = [0.2, -0.1]
"""Log-probability of the sampler less that of the reference, token by token."""
WITH_REWARD_KL = sorted(name for name, kind in ALGORITHMS.items() if issubclass(kind.Config, RewardKLConfig))

READ_ANYWAY = {"rto"}
"""Methods whose token rewards are relative to the reference policy."""


def table_of(rewards: Sequence[Sequence[float]], drift: Sequence[float], tokens: int = 1) -> TurnTable:
    """One group of episodes whose turns have so many tokens; a critic of zeros."""
    episodes = [
        Trajectory(
            EpisodeSpec(number, 0, group=0),
            turns=[
                Turn("", "", "", completion_ids=(1,) * tokens, logprobs=(-1.0,) * tokens, reward=reward)
                for reward in each
            ],
            terminated=True,
        )
        for number, each in enumerate(rewards)
    ]
    table = turn_table(episodes)
    zeros = torch.zeros(len(table.token_turn), dtype=torch.float64)
    table = table.with_values(torch.zeros(table.num_turns), zeros, torch.zeros(table.num_episodes))
    return replace(table, token_reference_logprob=table.token_logprob - torch.tensor(drift, dtype=torch.float64))


def advantages(name: str, table: TurnTable, **config: Any) -> Tensor:
    return build(name, {name: {"reward_kl_coef": 0.1, **config}}).credit(table).advantages


def close(found: Tensor, expected: Sequence[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype), atol=1e-6, rtol=0)


def test_the_worked_example_over_tokens() -> None:
    """Rewards [0, 1] less 0.1 * [.2, -.1] are [-.02, 1.01]; their sums to the end are [.99, 1.01]."""
    table = table_of([[0.0, 1.0]], DRIFT)
    for name in ("ppo", "vc_ppo", "t_ppo"):
        close(advantages(name, table, whiten=False, lam=1.0), [0.99, 1.01])
    close(advantages("poad", table, whiten=False, gamma=1.0, lam=1.0), [0.99, 1.01])
    close(advantages("ppo", table, whiten=False, lam=0.0), [-0.02, 1.01])


@pytest.mark.parametrize(("estimator", "cost"), [("k1", 0.2), ("k2", 0.02), ("k3", 0.018731)])
def test_the_estimator_is_the_one_that_is_named(estimator: str, cost: float) -> None:
    table = table_of([[0.0]], [0.2])
    close(advantages("ppo", table, whiten=False, reward_kl_estimator=estimator), [-0.1 * cost])


def test_a_turn_pays_for_all_of_its_tokens() -> None:
    table = table_of([[0.0, 1.0]], [0.2, 0.3, -0.1, 0.0], tokens=2)
    found = advantages("turn_ppo", table, whiten=False, gamma=1.0, lam=0.0, invalid_penalty=0.0)
    close(found, [-0.05, -0.05, 1.01, 1.01])


def test_an_episode_pays_for_all_of_its_tokens_before_the_others_are_averaged() -> None:
    """Returns [1, 0] less 0.1 * [.1, .5] are [.99, -.05]; each is compared with the other one."""
    table = table_of([[0.0, 1.0], [0.0, 0.0]], [*DRIFT, 0.2, 0.3])
    close(advantages("rloo", table), [1.04, 1.04, -1.04, -1.04])


def test_remax_subtracts_what_is_still_to_come() -> None:
    table = table_of([[0.0, 1.0]], DRIFT)
    known = {"greedy_return": torch.tensor([0.25], dtype=torch.float64)}
    table = replace(table, columns={**table.columns, "episode": known})
    close(advantages("remax", table), [0.75 - 0.01, 0.75 + 0.01])


@pytest.mark.parametrize("name", WITH_REWARD_KL)
def test_the_reference_is_asked_for_where_the_divergence_has_a_weight(name: str) -> None:
    assert Need.REFERENCE_LOGPROBS in build(name, {name: {"reward_kl_coef": 0.1}}).needs
    without = Need.REFERENCE_LOGPROBS in build(name, {name: {"reward_kl_coef": 0.0, "kl_coef": 0.0}}).needs
    assert without == (name in READ_ANYWAY)


def test_a_table_without_the_reference_is_refused() -> None:
    table = replace(table_of([[1.0]], [0.0]), token_reference_logprob=None)
    with pytest.raises(ConfigError, match="the turn table has no 'token_reference_logprob'"):
        advantages("ppo", table)
    assert advantages("ppo", table, reward_kl_coef=0.0, whiten=False).tolist() == [1.0]


def adaptive(**config: Any) -> tuple[Algorithm[Any], RewardKLMethod[Any]]:
    """A composition, and its base, whose weight is adapted."""
    algorithm = build("ppo+epo", {"ppo": {"reward_kl_coef": 0.001, "reward_kl_target": 0.1, **config}})
    base = algorithm.innermost  # type: ignore[attr-defined]
    assert isinstance(base, RewardKLMethod)
    return algorithm, base


def test_the_weight_follows_the_target_and_survives_a_checkpoint() -> None:
    """Divergence .3 over a target of .1 with 256 episodes and a horizon of 10,000: times 1.00512."""
    algorithm, base = adaptive()
    algorithm.observe({"credit/reward_kl": 0.3, "rollout/episodes": 256.0})
    assert base.reward_kl_coef == pytest.approx(0.00100512)
    resumed, base_of_resumed = adaptive()
    resumed.load_state(json.loads(json.dumps(algorithm.state())))
    assert base_of_resumed.reward_kl_coef == base.reward_kl_coef
    close(base.token_costs(table_of([[0.0]], [0.2])), [0.2 * 0.00100512])
    fixed, of_fixed = adaptive(reward_kl_target=0.0)
    fixed.observe({"credit/reward_kl": 0.3, "rollout/episodes": 256.0})
    assert of_fixed.reward_kl_coef == 0.001 and fixed.state()["base"] == {}


def test_the_learner_reads_the_reference_before_it_assigns_credit() -> None:
    model = small_model()
    learner = Learner(model, build("ppo", {"ppo": {"reward_kl_coef": 0.1}}), UpdateConfig(learning_rate=1e-2, epochs=4))
    first = learner.update(play(model), 0)
    assert first["credit/reward_kl"] == pytest.approx(0, abs=1e-5) and first["credit/reward_kl_coef"] == 0.1
    second = learner.update(play(model), 1)
    assert abs(second["credit/reward_kl"]) > 1e-5, "the policy has left its reference"
