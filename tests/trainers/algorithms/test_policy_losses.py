"""Modifiers with a policy loss of their own: worked numbers, and where in a composition they may stand."""

import math

import pytest
import torch
from test_group_methods import episode, of
from test_surrogates import close, double
from torch import Tensor, tensor

from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod, Surrogate
from turngym.trainers.core.algorithm import LossInputs
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
