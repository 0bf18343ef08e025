"""Methods whose credit follows from likelihoods, and losses with other weights than ratios: worked numbers."""

import json
import math
from dataclasses import replace

import pytest
import torch
from test_group_methods import close, episode, of
from test_policy_losses import lost

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.aspo import ASPO
from turngym.trainers.algorithms.seed_grpo import with_answer
from turngym.trainers.algorithms.trpa import levels_of
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.turn_table import turn_table


def said(action: str, logprob: float, reward: float = 0.0, group: int = 0) -> Trajectory:
    """An episode of one turn and two tokens with one log-probability in sum, and an empty turn after it."""
    turn = Turn("", "", action, completion_ids=(1, 2), logprobs=(logprob / 2, logprob / 2), reward=reward)
    return Trajectory(EpisodeSpec(0, 0, group), turns=[turn, Turn("", "", "nothing")], terminated=True)


def test_seed_grpo_shrinks_a_group_by_the_entropy_of_its_answers() -> None:
    method = build("seed_grpo")
    played = [said(" Four", -10, 1), said("four ", -12, 1), said("five", -11, 0), said("alone", -3, 7, group=1)]
    credit = method.credit(turn_table(method.collect(lambda: played)))
    factor = 1 - 0.02 * 10.436536 / math.log(3)
    close(credit.advantages[::2], [factor / 3, factor / 3, -2 * factor / 3, 0], 1e-6)
    assert credit.metrics["seed_factor"] == pytest.approx((1 + factor) / 2, abs=1e-6)
    assert factor == pytest.approx(0.810005, abs=1e-6)


def test_seed_grpo_never_turns_a_group_around() -> None:
    table = turn_table([with_answer(said(word, -500, reward)) for word, reward in (("a", 1), ("b", 0))])
    close(of("seed_grpo", table), [0, 0, 0, 0])
    exponential = of("seed_grpo", table, shape="exponential", likelihood="mean", alpha=0.01)
    close(exponential[::2], [0.5 * math.exp(-2.5 / math.log(2)), -0.5 * math.exp(-2.5 / math.log(2))])


def test_var_tb_balances_likelihoods_with_rewards() -> None:
    table = turn_table([said("", u, r) for u, r in ((-1.2, 0.8), (-0.9, 1.0), (-1.5, 0.3))])
    credit = build("var_tb", {"var_tb": {"flow": "return"}}).credit(table)
    z = [-1.2 - math.log(0.8), -0.9, -1.5 - math.log(0.3)]
    close(credit.advantages[::2], [sum(z) / 3 - each for each in z], 1e-9)
    assert credit.metrics["balance_error"] == pytest.approx(0.092691, abs=1e-6)
    balanced = turn_table([said("", 2 * r - 3, r) for r in (-1.0, 0.0, 2.5)])
    close(of("var_tb", balanced, temperature=0.5), [0.0] * 6)
    failed = turn_table([said("", -1, -4), said("", -1, 0), said("", -1, 1)])
    close(of("var_tb", failed, flow="return", floor=math.exp(-3))[::2], [-1, -1, 2])


def test_trpa_ranks_right_before_wrong_before_cut_off_before_malformed() -> None:
    cut = replace(episode([0.2]), terminated=False, truncated=True)
    both = replace(episode([1, 0.5], invalid=[0]), terminated=False, truncated=True)
    played = [episode([1]), episode([0.9]), cut, episode([0, 0], invalid=[1]), both]
    assert levels_of(turn_table(played), 1.0).tolist() == [1, 2, 3, 4, 1]


def test_trpa_pulls_the_episodes_of_a_pair_apart_by_how_wrong_their_order_is() -> None:
    table = turn_table([said("", -1.0, 1), said("", -1.0, 0), said("", -1.0, 0, group=1)])
    with pytest.raises(ConfigError, match="no 'token_reference_logprob'"):
        build("trpa").credit(table)
    gaps = torch.tensor([0.2, 0.2, -0.1, -0.1, 5.0, 5.0]).double()
    credit = build("trpa").credit(replace(table, token_reference_logprob=table.token_logprob - gaps))
    pull = 3 * 0.25 / (1 + math.exp(0.25 * 0.3))
    close(credit.advantages, [pull, pull, -pull, -pull, 0, 0], 1e-9)
    assert credit.metrics["trpa_pairs"] == 1
    assert credit.metrics["trpa_loss"] == pytest.approx(math.log(1 + math.exp(-0.075)), abs=1e-9)


def test_dmpo_draws_episodes_of_equal_returns_to_equal_likelihoods() -> None:
    silent = replace(said("", 0, 1), turns=[Turn("", "", "", reward=1.0)])
    played = [said("", -1.0, 1), said("", -1.4, 0), said("", -1.2, 0), silent, said("", -4.0, 1, group=1)]
    table = turn_table(played)
    plain, found = build("dr_grpo").credit(table), build("dr_grpo+dmpo").credit(table)
    logprobs = torch.tensor([-0.5, -0.7, -0.6], dtype=torch.float64, requires_grad=True)
    target = torch.softmax(torch.tensor([15.0, 0, 0]).double(), 0)
    loss = ((target - torch.softmax(logprobs, 0)) ** 2).mean()
    assert float(loss.detach()) == pytest.approx(0.200406, abs=1e-6)
    slopes = torch.autograd.grad(loss, logprobs)[0].tolist()
    close((found.advantages - plain.advantages)[::2], [*(-6 * each for each in slopes), 0], 1e-9)
    assert found.metrics["dmpo_slope"] == pytest.approx(sum(map(abs, slopes)), abs=1e-9)
    equal = turn_table([said("", -1.0, 1), said("", -3.0, 1)])
    pulled = (build("dr_grpo+dmpo").credit(equal)).advantages[::2]
    assert float(pulled[0]) < 0 < float(pulled[1])


def test_aspo_weighs_good_tokens_by_the_inverse_ratio() -> None:
    """The clips of a turn of one token are narrow: its entropy is its own quantile."""
    shift, signs = [[0.1, 0.4, -2.0, 0.1, -0.4, 2.0]], [[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]]

    method = build("grpo+aspo", {"grpo": {"kl_coef": 0.0}})
    assert isinstance(method, ASPO)
    before = torch.full((1, 6), -3.0, dtype=torch.float64)
    logprobs = (before + torch.tensor(shift).double()).requires_grad_()
    ids = torch.arange(6)[None]
    given = LossInputs(logprobs, before, torch.tensor(signs).double(), ids >= 0, ids, {}, entropy=torch.ones(1, 6))
    found = method.surrogate(given)
    gradient = torch.autograd.grad(found.policy.loss.sum(), logprobs)[0]
    close(gradient, [[-math.exp(-0.1), 0.0, -3.0, math.exp(0.1), 0.0, 3.0]])
    assert found.policy.clipped.tolist() == [[False, True, False, False, True, False]]
    wide = method.weighted(found.ratio.detach(), given, torch.zeros_like(ids).bool())
    assert wide.clipped.tolist() == [[False, True, False, False, False, False]]


def test_r2vpo_moves_its_weight_towards_the_budget_and_keeps_it() -> None:
    settings = {"weight": 0.5, "rate": 0.1, "budget": 0.01}
    found, gradient = lost("r2vpo", [[0.8, -0.8]], [[1.0, 1.0]], [[0, 1]], [[-1.0, -1.0]], **settings)
    close(gradient, [[-math.exp(0.8), -math.exp(-0.8)]])  # no clip
    assert not found.policy.clipped.any()
    method = build("grpo+r2vpo", {"r2vpo": settings})
    method.observe({"loss/ratio_variance": 0.156972})
    assert method.state()["weight"] == pytest.approx(0.514697, abs=1e-6)
    resumed = build("grpo+r2vpo", {"r2vpo": settings})
    resumed.load_state(json.loads(json.dumps(method.state())))
    assert resumed.state() == method.state()
    for _ in range(600):
        resumed.observe({"loss/ratio_variance": 0.0})
    assert resumed.state()["weight"] == 0.0
