"""Policy losses that clip otherwise than PPO: worked numbers, gradients, and what each does that PPO does not."""

import math

import pytest
import torch
from torch import Tensor, tensor

from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod, Surrogate
from turngym.trainers.core.algorithm import LossInputs

torch.set_num_threads(1)


def double(rows: object) -> Tensor:
    return tensor(rows, dtype=torch.float64)


def close(found: Tensor, expected: object, atol: float = 1e-6) -> None:
    torch.testing.assert_close(found.detach(), double(expected), atol=atol, rtol=0)


def surrogate(
    name: str, log_ratio: object, advantages: object, turns: object, old: float = -1.0, **config: object
) -> tuple[Surrogate, Tensor]:
    """The per-token policy loss of a method, and the gradient of its sum by the log-probabilities."""
    shift = double(log_ratio)
    logprobs = (shift + old).requires_grad_()
    ids = tensor(turns)
    method = build(name, {name: config})
    assert isinstance(method, PolicyMethod)
    found = method.surrogate(
        LossInputs(logprobs, torch.full_like(shift, old), double(advantages), ids >= 0, ids, weights={})
    )
    return found, torch.autograd.grad(found.policy.loss.sum(), logprobs)[0]


# GSPO: section 7. Mean log-ratio (.01 - .004 + 0) / 3 = .002, ratio 1.002002, above 1 + 4e-4.


def test_gspo_by_hand() -> None:
    log_ratio, turns = [[0.01, -0.004, 0.0]], [[0, 0, 0]]
    found, gradient = surrogate("gspo", log_ratio, [[1.0] * 3], turns)
    close(found.ratio, [[1.002002] * 3])
    close(found.policy.loss, [[-1.0004] * 3])
    assert found.policy.clipped.all() and not gradient.any()
    lowered, gradient = surrogate("gspo", log_ratio, [[-1.0] * 3], turns)
    close(lowered.policy.loss, [[1.002002] * 3])
    close(gradient, [[1.002002] * 3])  # three tokens hold the loss of one turn, each with a third of the gradient


def test_gspo_token_lets_tokens_of_a_turn_differ() -> None:
    """Same values; with unequal advantages the exact ratio spreads their mean, the token form keeps each apart."""
    log_ratio, advantages, turns = [[0.1, -0.1]], [[1.0, -3.0]], [[0, 0]]
    wide = {"clip_low": 0.5, "clip_high": 0.5}
    exact, spread = surrogate("gspo", log_ratio, advantages, turns, **wide)
    token, own = surrogate("gspo", log_ratio, advantages, turns, ratio="turn_geometric_by_token", **wide)
    torch.testing.assert_close(exact.policy.loss, token.policy.loss)
    close(spread, [[1.0, 1.0]])  # -(1 - 3) / 2
    close(own, [[-1.0, 3.0]])


def test_gspo_of_one_token_turns_is_grpo_with_its_clip() -> None:
    given = [[0.1, -0.1]], [[1.0, -3.0]], [[0, 1]]
    settings = {"clip_low": 0.05, "clip_high": 0.05, "dual_clip": 0.0}
    for name in ("gspo", "grpo"):
        found, gradient = surrogate(name, *given, **settings)
        close(found.policy.loss, [[-1.05, 3 * 0.95]])
        assert not gradient.any()


# CISPO: ratio clipped to 1.2, A 2, log p -.5 -> 1.2


def test_cispo_by_hand() -> None:
    found, gradient = surrogate("cispo", [[0.5]], [[2.0]], [[0]], old=-1.0, clip_high=0.2)
    close(found.policy.loss, [[1.2]])
    close(gradient, [[-2.4]])  # -1.2 * 2: clipped, and yet it learns
    assert found.policy.clipped.tolist() == [[True]]
    _, dropped = surrogate("grpo", [[0.5]], [[2.0]], [[0]])
    assert not dropped.any(), "PPO drops the gradient of that token"


def test_cispo_clips_both_ends_or_only_the_upper_one() -> None:
    low, _ = surrogate("cispo", [[-2.0]], [[1.0]], [[0]], old=-1.0, clip_low=0.2)
    close(low.policy.loss, [[0.8 * 3]])
    none, _ = surrogate("cispo", [[-2.0]], [[1.0]], [[0]], old=-1.0, clip_low=1.0)
    close(none.policy.loss, [[math.exp(-2) * 3]])


def test_cispo_weighs_by_turns_where_it_is_told_to() -> None:
    """The weight of a whole turn, each token with its own log-probability."""
    found, gradient = surrogate("cispo", [[0.3, -0.1]], [[1.0, 1.0]], [[0, 0]], ratio="turn_geometric")
    close(found.ratio, [[math.exp(0.1)] * 2])
    close(gradient, [[-math.exp(0.1)] * 2])


# GMPO: d = [.5, -.1], widths .4


@pytest.mark.parametrize(("advantage", "loss"), [(1.0, -1.161834), (-1.0, 1.221403)])
def test_gmpo_by_hand(advantage: float, loss: float) -> None:
    # A 1: (.4 - .1) / 2 = .15. A -1: nothing is clipped, (.5 - .1) / 2 = .2.
    found, gradient = surrogate("gmpo", [[0.5, -0.1]], [[advantage] * 2], [[0, 0]])
    close(found.policy.loss, [[loss] * 2])
    assert found.policy.clipped.tolist() == [[advantage > 0, False]]
    assert (gradient == 0).tolist() == [[advantage > 0, False]]


def test_one_outlier_moves_gmpo_less_than_gspo() -> None:
    given = [[-3.0, 0, 0, 0]], [[-1.0] * 4], [[0] * 4]
    wide = {"clip_low": 0.4, "clip_high": 0.4}
    raised, _ = surrogate("gmpo", *given, **wide)
    close(raised.policy.loss, [[math.exp(-0.1)] * 4])  # one token clipped at -.4
    whole, _ = surrogate("gspo", *given, **wide)
    close(whole.policy.loss, [[0.6] * 4])  # the whole turn clipped


SETTINGS_THAT_MAKE_NO_SENSE_ARE_REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("gmpo", {"ratio": "token"}, "gmpo is the geometric mean of clipped ratios over a turn: leave dual_clip=0"),
    ("gmpo", {"dual_clip": 3.0}, "gspo has other ratios"),
    ("cispo", {"dual_clip": 3.0}, "cispo clips its weights on both sides and has no dual_clip: leave 0, got 3.0"),
    ("a3po", {"weight_cap": -1.0}, "weight_cap must be at least 0"),
    ("dapo", {"max_rounds": 0}, "max_rounds must be at least 1"),
    ("hgpo", {"history": -1}, "history must be at least 0"),
    ("hgpo", {"weight_offset": 2}, "weight_offset must be from 0 to 1"),
    ("stratified_grpo", {"alpha": 2.0}, "alpha must be from 0 to 1"),
    ("stratified_grpo", {"by": "tokens"}, "by must be one of turns, valid_turns"),
    ("gdpo", {"whiten_over": "turn"}, "whiten_over must be one of token, trajectory"),
    ("reinforce_pp", {"gamma": 1.5}, "gamma must be from 0 to 1"),
    ("rloo", {"singleton": "one"}, "singleton must be one of zero, raw"),
]


def test_settings_that_make_no_sense_are_refused() -> None:
    for name, config, message in SETTINGS_THAT_MAKE_NO_SENSE_ARE_REFUSED:
        with pytest.raises(ConfigError) as caught:
            build(name, {name: config})
        assert message in str(caught.value)


# SAPO and LUSPO, loss functions


def test_sapo_is_the_plain_policy_gradient_at_ratio_one_and_fades_away_from_it() -> None:
    ratio = double([[1.0, 1.0, 3.0, 9.0]]).requires_grad_()
    advantages = double([[2.0, -2.0, 2.0, -2.0]])
    loss = F.sapo_loss(ratio, advantages)
    close(loss[0, :2], [-4.0, 4.0 / 1.05])  # -A * sigmoid(0) * 4 / t
    (gradient,) = torch.autograd.grad(loss.sum(), ratio)
    close(gradient[0, :2], [-2.0, 2.0])
    # d/dr = 4 s (1 - s) with s = sigmoid(t (r - 1)): .419974 at r = 3 and .000899 at r = 9 with t = 1.05.
    close(gradient[0, 2:], [-2 * 0.419974, 2 * 0.000899], 1e-6)


def test_luspo_gives_every_token_the_same_weight_whatever_turn_it_is_in() -> None:
    """Averaged over turns, GSPO weighs a token by one over the length of its turn, and LUSPO does not."""
    turns = tensor([[0, -1, -1], [1, 1, 1]])
    log_ratio = torch.zeros(2, 3, dtype=torch.float64).requires_grad_()
    found = F.luspo_surrogate(log_ratio, torch.ones(2, 3).double(), turns, clip_low=0.2, clip_high=0.2)
    mask = turns >= 0
    loss = ((found.loss * mask).sum(-1) / mask.sum(-1)).mean()
    (gradient,) = torch.autograd.grad(loss, log_ratio)
    close(gradient, [[-0.5, 0, 0], [-0.5, -0.5, -0.5]])
    assert found.unclipped[1].tolist() == [-3.0] * 3


def test_the_overlong_penalty_by_hand() -> None:
    close(F.overlong_penalty(double([70, 80, 90, 100, 110]), limit=100, buffer=20), [0, 0, -0.5, -1.0, -1.5])


# Baselines


def test_baselines_of_singletons_and_of_empty_batches() -> None:
    returns, groups = double([3.0, 1.0, 0.0]), tensor([0, 1, 1])
    lengths = tensor([5, 1, 3])
    assert F.leave_one_out_baselines(returns, groups).tolist() == [3.0, 0.0, 1.0]
    assert F.leave_one_out_baselines(returns, groups, singleton="raw").tolist() == [0.0, 0.0, 1.0]
    assert F.length_weighted_baselines(returns, lengths, groups).tolist() == [3.0, 0.25, 0.25]
    assert F.length_weighted_baselines(returns, lengths, groups, singleton="raw").tolist() == [0.0, 0.25, 0.25]
    assert F.length_weighted_baselines(returns, lengths * 0, groups).tolist() == [3.0, 0.0, 0.0]
    for empty in (
        F.leave_one_out_baselines(returns[:0], groups[:0]),
        F.length_weighted_baselines(returns[:0], lengths[:0], groups[:0]),
    ):
        assert empty.tolist() == []


@pytest.mark.parametrize("value", [0.1, 0.3, 1e9 + 0.1, -1 / 3])
def test_equal_returns_are_their_own_baseline_whatever_their_rounding(value: float) -> None:
    returns, groups = double([value] * 3), torch.zeros(3).long()
    assert F.leave_one_out_baselines(returns, groups).tolist() == [value] * 3
    assert F.length_weighted_baselines(returns, tensor([1, 7, 3]), groups).tolist() == [value] * 3


def test_a_leave_one_out_baseline_equals_the_loop() -> None:
    returns = torch.randn(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    groups = tensor([0, 1, 2] * 4)
    expected = [sum(float(returns[j]) for j in range(12) if j != i and groups[j] == groups[i]) / 3 for i in range(12)]
    close(F.leave_one_out_baselines(returns, groups), expected, 1e-12)
