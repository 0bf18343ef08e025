"""Policy, value and divergence losses against reference vectors, with their gradients, and hand-made numbers."""

import math
from typing import Any

import pytest
import torch
from oracle import all_cases, cases, close, double
from torch import Tensor, tensor

from turngym.errors import ConfigError
from turngym.trainers import functional as F

TRL_TYPES = {"grpo", "bnpo", "dr_grpo", "dapo"}


def test_the_clipped_surrogate_equals_verl_with_its_gradient() -> None:
    for case in all_cases("verl_ppo_clip"):
        settings, mask = case["settings"], tensor(case["response_mask"]).bool()
        logprobs = double(case["log_prob"]).requires_grad_()
        log_ratio = logprobs - double(case["old_log_prob"])
        surrogate = F.clipped_surrogate(
            F.exp_clamped(log_ratio),
            double(case["advantages"]),
            clip_low=settings["clip_ratio_low"],
            clip_high=settings["clip_ratio_high"],
            dual_clip=settings["clip_ratio_c"],
        )
        loss = F.aggregate(surrogate.loss, mask, settings["loss_agg_mode"])
        (gradient,) = torch.autograd.grad(loss, logprobs)
        close(loss, case["loss"])
        close(gradient, case["grad_log_prob"])
        metrics = case["metrics"]
        close(surrogate.clipped[mask].double().mean(), metrics["actor/pg_clipfrac"])
        close(surrogate.clipped_lower[mask].double().mean(), metrics["actor/pg_clipfrac_lower"])
        close(-log_ratio[mask].mean(), metrics["actor/ppo_kl"])


def test_the_clipped_surrogate_by_hand() -> None:
    # Section 1.6, clip .2, dual clip 3. 1.5 with A 1: clipped at 1.2 -> -1.2. .5 with A -1: max(.5, .8) = .8.
    # 4 with A -1: max(4, 1.2) = 4, bounded by 3. 1.1 with A 2: inside, -2.2. Mean (-1.2 + .8 + 3 - 2.2) / 4 = .1.
    ratio, advantages = double([[1.5, 0.5, 4, 1.1]]), double([[1, -1, -1, 2]])
    surrogate = F.clipped_surrogate(ratio, advantages, clip_low=0.2, clip_high=0.2, dual_clip=3.0)
    close(surrogate.loss, [[-1.2, 0.8, 3.0, -2.2]])
    close(F.aggregate(surrogate.loss, torch.ones(1, 4).bool(), "token-mean"), 0.1)
    assert surrogate.clipped.tolist() == [[True, True, False, False]]
    assert surrogate.clipped_lower.tolist() == [[False, False, True, False]]
    close(-ratio.log().mean(), -0.298481)
    close(surrogate.unclipped, [[-1.5, 0.5, 4.0, -2.2]])


def test_without_the_dual_clip_a_negative_advantage_is_unbounded() -> None:
    surrogate = F.clipped_surrogate(double([[40.0]]), double([[-1.0]]), clip_low=0.2, clip_high=0.2)
    assert float(surrogate.loss) == 40
    assert not surrogate.clipped_lower.any()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("token-mean", 2.5), ("seq-mean-token-sum", 5.0), ("seq-mean-token-mean", 3.0), ("token-sum-norm", 2.5)],
)
def test_aggregation_by_hand(mode: str, expected: float) -> None:
    # Section 1.6: tokens 1, 2, 3 and 4 in two rows and a row without any: 10/4; (6+4)/2; (2+4)/2; 10/4 (padded length).
    # The vectors of verl 0.9.1 divide the last by the number of rows too; that is the mode seq-mean-token-sum-norm.
    losses = double([[1, 2, 3, 0], [4, 0, 0, 0], [math.nan] * 4])
    mask = tensor([[True, True, True, False], [True, False, False, False], [False] * 4])
    close(F.aggregate(losses, mask, mode), expected)


def test_the_constant_of_an_aggregation_can_be_given() -> None:
    close(F.aggregate(torch.ones(2, 3), torch.ones(2, 3).bool(), "token-sum-norm", constant=12.0).double(), 0.5)


@pytest.mark.parametrize("mode", F.AGGREGATIONS)
def test_a_batch_without_a_token_aggregates_to_a_differentiable_zero(mode: str) -> None:
    losses = torch.ones(2, 3, requires_grad=True)
    total = F.aggregate(losses, torch.zeros(2, 3).bool(), mode)
    (gradient,) = torch.autograd.grad(total, losses)
    assert float(total.detach()) == 0
    assert not gradient.any()


def test_an_unknown_aggregation_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no aggregation named 'token_mean'. Did you mean 'token-mean'\?"):
        F.aggregate(torch.ones(1, 1), torch.ones(1, 1).bool(), "token_mean")


def test_the_value_loss_equals_verl_with_its_gradient() -> None:
    for case in all_cases("verl_value_loss"):
        settings, mask = case["settings"], tensor(case["response_mask"]).bool()
        values = double(case["vpreds"]).requires_grad_()
        found = F.value_loss(values, double(case["values"]), double(case["returns"]), clip=settings["cliprange_value"])
        loss = F.aggregate(found.loss, mask, settings["loss_agg_mode"])
        (gradient,) = torch.autograd.grad(loss, values)
        close(loss, case["loss"])
        close(gradient, case["grad_vpreds"])
        close(found.clipped[mask].double().mean(), case["clipfrac"])


def test_the_value_loss_by_hand() -> None:
    # Section 1.6: V 1 from 0 is held at .5, error .25 against 0 -> .125; V .2: error .64 -> .32; mean .2225.
    found = F.value_loss(double([[1, 0.2]]), double([[0, 0]]), double([[1, 1]]), clip=0.5)
    close(found.loss, [[0.125, 0.32]])
    close(found.loss.mean(), 0.2225)
    close(F.value_loss(double([[1, 0.2]]), double([[0, 0]]), double([[1, 1]]), clip=0.0).loss, [[0.0, 0.32]])


def test_a_critic_without_a_target_has_no_loss_and_no_gradient() -> None:
    values = double([[0.3, 0.3]]).requires_grad_()
    found = F.value_loss(values, double([[0, 0]]), double([[math.nan, 1.0]]), clip=0.5)
    (gradient,) = torch.autograd.grad(found.loss.sum(), values)
    assert found.loss[0, 0] == 0
    assert gradient[0, 0] == 0
    assert gradient[0, 1] != 0
    assert not found.clipped[0, 0]


@pytest.mark.parametrize("case", cases("verl_kl"))
def test_kl_estimators_equal_verl_with_their_gradients(case: dict[str, Any]) -> None:
    logprobs = double(case["logprob"]).requires_grad_()
    found = F.kl_penalty(logprobs, double(case["ref_logprob"]), case["settings"]["kl_penalty"])
    (gradient,) = torch.autograd.grad(found.sum(), logprobs)
    close(found, case["kl"])
    close(gradient, case["grad_of_sum"])


@pytest.mark.parametrize(("estimator", "value"), [("k1", 0.5), ("abs", 0.5), ("k2", 0.125), ("k3", 0.106531)])
def test_kl_estimators_by_hand(estimator: str, value: float) -> None:
    # Section 1.4, x = -1 + 1.5 = .5: x, |x|, x^2/2, exp(-x) + x - 1.
    close(F.kl_penalty(double(-1.0), double(-1.5), estimator), value)


def test_the_expected_gradient_of_k2_is_that_of_the_divergence_and_k1_has_none() -> None:
    """Why the trailing + exists: over tokens that the policy samples, the gradient of k1 averages to zero."""
    logits, reference = double([0.3, -0.2, 0.9]).requires_grad_(), double([0.1, 0.5, -0.4]).log_softmax(0)
    logprobs = logits.log_softmax(0)
    probabilities = logprobs.exp()
    (truth,) = torch.autograd.grad((probabilities * (logprobs - reference)).sum(), logits, retain_graph=True)

    def expected(estimator: str) -> Tensor:
        total = (probabilities.detach() * F.kl_penalty(logprobs, reference, estimator)).sum()
        return torch.autograd.grad(total, logits, retain_graph=True)[0]

    torch.testing.assert_close(expected("k1+"), truth)
    torch.testing.assert_close(expected("k3+"), truth)
    torch.testing.assert_close(expected("k1"), torch.zeros_like(truth))


def test_the_adaptive_kl_coefficient_moves_a_little_and_both_ways() -> None:
    # Section 1.6: error clipped to .2, times 256 / 10000.
    factor = F.adaptive_kl_factor(0.3, target=0.1, num_samples=256, horizon=10_000)
    assert 0.001 * factor == pytest.approx(0.00100512)
    assert F.adaptive_kl_factor(0.0, target=0.1, num_samples=256, horizon=10_000) == pytest.approx(1 - 0.00512)


def test_grpo_like_losses_equal_trl_with_their_gradient() -> None:
    """TRL's delta caps the ratio before the clip: the dual clip of a negative advantage; of others it never binds."""
    for case in all_cases("trl_grpo_loss"):
        settings = case["settings"]
        if settings["loss_type"] not in TRL_TYPES:
            continue
        mask = tensor(case["completion_mask"]).bool() & tensor(case["tool_mask"]).bool()
        logprobs = double(case["logps"]).requires_grad_()
        log_ratio = F.log_ratios(logprobs, double(case["old_logps"]), mask)
        if settings["importance_sampling_level"] == "sequence":  # a row is one turn then: the same geometric mean
            rows = torch.arange(len(mask))[:, None].expand_as(mask)
            ratio = F.turn_geometric_ratio(log_ratio, torch.where(mask, rows, -1))
        else:
            ratio = F.token_ratio(log_ratio, mask)
        surrogate = F.clipped_surrogate(
            ratio,
            double(case["advantages"])[:, None].expand_as(mask),
            clip_low=settings["epsilon_low"],
            clip_high=settings["epsilon_high"],
            dual_clip=settings["delta"] or 0.0,
        )
        losses = surrogate.loss + settings["beta"] * F.kl_penalty(logprobs, double(case["ref_logps"]), "k3")
        total = trl_average(losses, mask, settings)
        (gradient,) = torch.autograd.grad(total, logprobs)
        close(total, case["loss"])
        close(gradient, case["grad_logps"])


def trl_average(losses: Tensor, mask: Tensor, settings: dict[str, Any]) -> Tensor:
    if settings["loss_type"] == "grpo":  # unlike verl, a row without a token counts as a row
        return ((losses * mask).sum(-1) / mask.sum(-1).clamp_min(1)).mean()
    if settings["loss_type"] == "dr_grpo":
        constant = len(mask) * settings["max_completion_length"]
        return F.aggregate(losses, mask, "token-sum-norm", constant=constant)
    return F.aggregate(losses, mask, "token-mean")
