"""Losses and advantages of newer methods: worked numbers, and where a policy loss may stand in a composition."""

import math
from dataclasses import replace

import pytest
import torch
from test_group_methods import episode, of
from test_surrogates import close, double
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod, Surrogate
from turngym.trainers.algorithms.kl_cov import KLCov
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import turn_table


def lost(
    name: str, log_ratio: object, advantages: object, turns: object, old: object, **config: object
) -> tuple[Surrogate, Tensor]:
    """The per-token policy loss of a modifier on GRPO, and the gradient of its sum by the log-probabilities."""
    before = double(old)
    logprobs = (double(log_ratio) + before).requires_grad_()
    ids = tensor(turns)
    method = build(f"grpo+{name}", {name: config, "grpo": {"kl_coef": 0.0}})
    assert isinstance(method, PolicyMethod)
    found = method.surrogate(LossInputs(logprobs, before, double(advantages), ids >= 0, ids, weights={}))
    return found, torch.autograd.grad(found.policy.loss.sum(), logprobs)[0]


def test_maxrl_weighs_a_success_by_how_rare_it_is() -> None:
    for returns, expected in (([1, 0, 0, 1], [1, -1, -1, 1]), ([1, 0, 0, 0], [3, -1, -1, -1]), ([0, 0], [0, 0])):
        close(of("maxrl", turn_table([episode([r]) for r in returns])), expected, 1e-12)
    close(of("maxrl", turn_table([episode([-1]), episode([0])])), [0, 0])


def test_dppo_judges_by_probabilities_and_not_by_ratios() -> None:
    """A doubled rare token stays, a likely one that lost a third of its probability does not; PPO does the opposite."""
    shift, old = [[math.log(2), math.log(2 / 3)]], [[math.log(0.1), math.log(0.9)]]
    found, gradient = lost("dppo", shift, [[1.0, -1.0]], [[0, 0]], old)
    close(found.policy.loss, [[-2.0, 0.0]])
    close(gradient, [[-2.0, 0.0]])
    assert found.policy.clipped.tolist() == [[False, True]]
    back, gradient = lost("dppo", shift, [[-1.0, 1.0]], [[0, 0]], old)
    close(gradient, [[2.0, -2 / 3]])
    assert not back.policy.clipped.any(), "a move back is never masked"


def test_dppo_with_a_cap_has_the_same_gradient_below_it() -> None:
    shift, old = [[math.log(2), math.log(1.5)]], [[-3.0, -3.0]]
    _, gradient = lost("dppo", shift, [[1.0, 1.0]], [[0, 0]], old, cap=1.8)
    close(gradient, [[-1.8, -1.5]])


def test_vespo_fades_a_turn_as_a_whole() -> None:
    found, gradient = lost("vespo", [[-0.4, -0.6, 0.0]], [[1.0, 1.0, -2.0]], [[0, 0, 1]], [[-1.0] * 3])
    close(gradient, [[-0.901551, -0.901551, 2.0]])
    close(found.ratio, [[math.exp(-1), math.exp(-1), 1.0]])


def test_opsm_masks_a_bad_turn_that_the_policy_has_left() -> None:
    shift, turns = [[-0.4, -1.0, 0.2, -0.7]], [[0, 0, 1, 2]]  # means -.7, .2 and -.7
    found, gradient = lost("opsm", shift, [[-1.0, -1.0, -1.0, 1.0]], turns, [[-1.0] * 4], threshold=0.5)
    close(found.policy.loss[:, :2], [[0.0, 0.0]])
    close(gradient, [[0.0, 0.0, math.exp(0.2), -math.exp(-0.7)]])


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("topr", {}, [-1.0, -1.0, 1.0, math.exp(-0.4)]),
        ("soft_ppo", {}, [0.0, -1.0, 0.0, 0.0]),
        ("rec", {}, [0.0, -1.0, 1.0, 0.0]),
        ("rec", {"mask": "two_side"}, [0.0, -1.0, 0.0, 0.0]),
        ("rec", {"mask": "ring", "far_high": 0.4}, [0.0, -1.0, 1.0, 0.0]),
        ("rec", {"mask": "none", "weight": "ratio"}, [-math.exp(0.5), -math.exp(0.1), math.exp(0.5), math.exp(-0.4)]),
        ("dro", {}, [-1.0, -1.0, 1.0, 1.0]),
    ],
)
def test_masks_and_weights_instead_of_a_clip(name: str, settings: dict[str, object], expected: list[float]) -> None:
    """The gradients of log-ratios .5, .1, .5 and -.4 with advantages 1, 1, -1 and -1."""
    given = [[0.5, 0.1, 0.5, -0.4]], [[1.0, 1.0, -1.0, -1.0]], [[0, 1, 2, 3]], [[-1.0] * 4]
    _, gradient = lost(name, *given, **settings)
    close(gradient, [expected])


GROUPS = [[1, 0, 0, 0], [1, 1, 0, 1]]


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("gpg", GROUPS, [1.5, -0.5, -0.5, -0.5, 0.5, 0.5, -1.5, 0.5]),
        ("lite_ppo", GROUPS, [1.403119, *[-0.467706] * 3, 0.467706, 0.467706, -1.403119, 0.467706]),
        ("bnpo", GROUPS, [0.716606, *[-0.238869] * 3, 0.238869, 0.238869, -0.716606, 0.238869]),
        ("pass_k", [[1, 0.5, 0, 0.2], [1, 1, 0, 0]], [1.149600, 0, 0, 0, 0, 0, 0, 0]),
        ("g2rpo", [[0.1, 0.1, 0.1, 0.2, 1]], [-0.601984, -0.601984, -0.601984, 0.524401, 1.281552]),
    ],
)
def test_advantages_by_hand(name: str, groups: list[list[float]], expected: list[float]) -> None:
    table = turn_table([episode([r], group=number) for number, group in enumerate(groups) for r in group])
    close(of(name, table), expected, 2e-6)


def test_bnpo_with_equal_rates_weighs_nothing_and_cuts_returns_to_their_range() -> None:
    table = turn_table([episode([r], group=number) for number in (0, 1) for r in (1, 0)])
    close(of("bnpo", table), [0.5, -0.5, 0.5, -0.5])
    close(of("bnpo", turn_table([episode([5]), episode([-3])])), [0.5, -0.5])


def covered(name: str, count: int, **settings: object) -> Credit:
    """The credit of tokens of which every second one is likely and in an episode that is paid."""
    paid = [replace(episode([1]), turns=[likely(-0.1)]) for _ in range(count)]
    unpaid = [replace(episode([0]), turns=[replace(likely(-2.1), reward=0.0)]) for _ in range(count)]
    return build(f"grpo+{name}", {name: settings}).credit(turn_table([*paid, *unpaid]))


def likely(logprob: float) -> Turn:
    return Turn("", "", "", completion_ids=(1,), logprobs=(logprob,), reward=1.0)


def test_clip_cov_takes_credit_from_as_many_tokens_as_it_may() -> None:
    for share, dropped in ((0.0002, 1), (0.5, 2), (0.0, 0)):
        credit = covered("clip_cov", 2, share=share, low=0.5)
        assert credit.metrics["clip_cov_candidates"] == 4 and credit.metrics["clip_cov_dropped"] == dropped
        assert int((credit.advantages == 0).sum()) == dropped


def test_clip_cov_draws_others_in_another_iteration() -> None:
    episodes = [replace(episode([k % 2]), turns=[replace(likely(-0.1 - 2 * (k % 2)), reward=k % 2)]) for k in range(40)]
    table = turn_table([replace(each, spec=EpisodeSpec(k, 0)) for k, each in enumerate(episodes)])
    method = build("grpo+clip_cov", {"clip_cov": {"low": -5.0, "share": 0.2}})
    drawn = []
    for iteration in (0, 1, 0):
        method.begin_iteration(iteration, 5)
        drawn.append(torch.nonzero(method.credit(table).advantages == 0).flatten().tolist())
    assert len(drawn[0]) == 8 and drawn[0] == drawn[2] != drawn[1]


def test_kl_cov_holds_the_highest_covariance_alone() -> None:
    credit = covered("kl_cov", 1, share=0.0002, coef=2.0)
    chosen = credit.columns["kl_cov_chosen"]
    assert isinstance(chosen, Tensor) and int(chosen.sum()) == 1
    method = build("grpo+kl_cov", {"kl_cov": {"coef": 2.0}, "grpo": {"kl_coef": 0.0}})
    assert isinstance(method, KLCov)
    logprobs = double([[-0.5, -0.5]]).requires_grad_()
    mask = tensor([[True, True]])
    given = LossInputs(logprobs, double([[-1.0, -1.0]]), double([[1.0, 1.0]]), mask, tensor([[0, 0]]), weights={})
    given = replace(given, columns={"kl_cov_chosen": tensor([[True, False]])})
    found = method.surrogate(given)
    close(found.policy.loss, [[-math.exp(0.5)] * 2])  # far above PPO's bound
    penalty = method.penalty(found, given)
    assert penalty is not None
    close(penalty, [[1.0, 0.0]])


@pytest.mark.parametrize("name", ["grpo+tis+vespo", "grpo+s_ppo+dppo", "grpo+dppo+vespo", "grpo+vespo+epo+dppo"])
def test_a_policy_loss_stands_directly_after_its_method(name: str) -> None:
    with pytest.raises(ConfigError, match=r"Name it directly after the method, as in grpo\+dppo\+tis"):
        build(name)


@pytest.mark.parametrize("name", ["maxrl+dppo+mis+tis", "grpo+epo+dppo", "gigpo+vespo+mis", "gspo+dppo+s_ppo"])
def test_corrections_and_regularisers_compose_with_a_policy_loss(name: str) -> None:
    assert isinstance(build(name), PolicyMethod)


def test_vespo_is_its_own_ratio_and_weight() -> None:
    with pytest.raises(ConfigError, match="own turn-level ratio"):
        build("grpo+vespo+turn_is")
    with pytest.raises(ConfigError, match="weighs samples against the sampler already"):
        build("grpo+vespo+tis")


@pytest.mark.parametrize("base", ["gkd", "sdft", "sdpo", "gkd+mis"])
@pytest.mark.parametrize("modifier", ["tis", "icepop", "opsm", "clip_cov", "opd_advantage"])
def test_what_works_through_advantages_needs_a_loss_that_reads_them(base: str, modifier: str) -> None:
    method = base.partition("+")[0].upper()
    with pytest.raises(ConfigError, match=f"works through advantages, which the loss of {method} does not read"):
        build(f"{base}+{modifier}")


def test_a_blended_loss_reads_advantages() -> None:
    assert isinstance(build("sdpo+tis", {"sdpo": {"weight": 0.5}}), PolicyMethod)
