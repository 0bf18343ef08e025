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
from turngym.trainers.algorithms.gflownet import GFlowNetConfig, balance_of
from turngym.trainers.algorithms.seed_grpo import with_answer
from turngym.trainers.algorithms.trpa import levels_of
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.turn_table import TurnTable, turn_table


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


def test_gflownet_balances_parts_of_an_episode_by_its_flow() -> None:
    flows, likelihoods, reward = [-0.2, -0.6], [-0.5, -0.7], 0.8
    turns = [said("", each, reward * k).turns[0] for k, each in enumerate(likelihoods)]
    table = turn_table([Trajectory(EpisodeSpec(0, 0), turns=turns, terminated=True)])
    table = table.with_values(
        torch.tensor(flows).double(), torch.tensor(flows).double().repeat_interleave(2), torch.zeros(1)
    )
    losses = {"trajectory": 1.384991, "detailed": (0.01 + 1.159620) / 2, "subtrajectory": 0.833142}
    for objective, loss in losses.items():
        for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-5)):
            free = [torch.tensor(each, dtype=dtype, requires_grad=True) for each in (flows, likelihoods)]
            config = GFlowNetConfig(objective=objective, flow="return")  # type: ignore[arg-type]
            found = balance_of(free[0], free[1], math.log(reward), config)
            assert float(found.loss.detach()) == pytest.approx(loss, abs=tolerance)
            by_flow, by_likelihood = torch.autograd.grad(found.loss, free)
            close(found.pulls.detach(), (-by_likelihood / 2).tolist(), tolerance)
            trained = found.targets.isfinite()
            close(found.targets[trained].detach(), (free[0] - by_flow / 2)[trained].tolist(), tolerance)
        assert trained.tolist() == [True, objective != "trajectory"]
        credit = build("gflownet", {"gflownet": {"objective": objective, "flow": "return"}}).credit(table)
        close(credit.advantages[::2], found.pulls.tolist(), 1e-6)
        assert credit.returns is not None and credit.returns[1::2].isnan().all()
        close(credit.returns[:3:2].nan_to_num(7), found.targets.nan_to_num(7).tolist(), 1e-6)
        assert credit.metrics["balance_error"] == pytest.approx(loss, abs=1e-6)
        assert credit.metrics["log_flow"] == pytest.approx(-0.2)


def test_the_flow_of_gflownet_has_the_unit_of_returns_at_any_temperature() -> None:
    values, found = torch.tensor([0.3, 0.5]).double(), []
    for temperature, reward in ((1.0, 0.8), (0.01, 0.008)):
        turns = [said("", each, reward * k).turns[0] for k, each in enumerate((-0.5, -0.7))]
        table = turn_table([Trajectory(EpisodeSpec(0, 0), turns=turns, terminated=True)])
        table = table.with_values(*(temperature * each for each in (values, values.repeat_interleave(2), values[:1])))
        found.append(build("gflownet", {"gflownet": {"temperature": temperature}}).credit(table))
    close(found[1].advantages, (0.01 * found[0].advantages).tolist(), 1e-12)
    assert found[1].metrics == pytest.approx(dict(found[0].metrics))


TREE = {"a": 2.0, "ba": 0.5, "bb": 1.0, "ca": 4.0, "cb": 0.5}
"""Actions of all episodes of a tree, and their rewards."""
STATES = {"": "abc", "b": "ab", "c": "ab"}


@pytest.mark.parametrize("objective", ["subtrajectory", "detailed", "trajectory"])
def test_all_episodes_of_a_tree_come_to_be_sampled_in_proportion_to_their_rewards(objective: str) -> None:
    method = build("gflownet", {"gflownet": {"objective": objective, "flow": "return"}})
    logits = {state: torch.zeros(len(actions)).double().requires_grad_() for state, actions in STATES.items()}
    flows = {state: torch.zeros(()).double().requires_grad_() for state in STATES}
    optimizer = torch.optim.Adam([*logits.values(), *flows.values()], lr=0.1)
    steps = [(actions[:k], STATES[actions[:k]].index(actions[k])) for actions in TREE for k in range(len(actions))]
    for _ in range(150):
        logprobs = torch.stack([logits[state].log_softmax(0)[action] for state, action in steps])
        values = torch.stack([flows[state] for state, _ in steps])
        table, chances = tree_table(logprobs.detach(), values.detach())
        credit = method.credit(table)
        assert credit.returns is not None
        errors = torch.where(credit.returns.isnan(), 0.0, values - credit.returns.nan_to_num())
        optimizer.zero_grad()
        (chances[table.episode] * (errors**2 / 2 - credit.advantages * logprobs)).sum().backward()
        optimizer.step()
    total = sum(TREE.values())
    close(chances, [reward / total for reward in TREE.values()], 1e-3)
    assert credit.metrics["balance_error"] < 1e-4
    assert flows[""].exp().item() == pytest.approx(total, abs=0.02)


def tree_table(logprobs: torch.Tensor, values: torch.Tensor) -> tuple[TurnTable, torch.Tensor]:
    """All episodes of the tree, one token a turn, and their probabilities."""
    rest, played = iter(logprobs.tolist()), []
    for actions, reward in TREE.items():
        turns = [Turn("", "", each, completion_ids=(1,), logprobs=(next(rest),)) for each in actions]
        turns[-1].reward = reward
        played.append(Trajectory(EpisodeSpec(0, 0), turns=turns, terminated=True))
    table = turn_table(played).with_values(values, values, torch.zeros(len(TREE)).double())
    return table, table.token_sum(logprobs).exp()


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
