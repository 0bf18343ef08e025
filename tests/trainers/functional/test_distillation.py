"""Learning from teachers against the vectors of prime-rl, slime, Tinker and TRL: losses and gradients in float64."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.core.algorithm import Divergence, LossInputs

FOLDER = Path(__file__).parents[4] / "shared" / "oracle3"


def cases(name: str) -> pytest.MarkDecorator:
    path = FOLDER / f"{name}.json"
    if not path.exists():
        skip = pytest.mark.skip(reason=f"the vectors {name} are not beside the checkout")
        return pytest.mark.parametrize("case", [pytest.param({}, marks=skip)])
    found = json.loads(path.read_text("utf8"))["cases"]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["label"]) for case in found])


def double(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def close(found: Tensor, expected: object) -> None:
    torch.testing.assert_close(found.detach(), double(expected), rtol=1e-8, atol=1e-9)


def inputs_of(case: dict[str, Any], logprobs: Tensor, old: Tensor, advantages: Tensor, weight: Tensor) -> LossInputs:
    mask = double(case["response_mask"]).bool()
    turns = torch.where(mask, torch.arange(len(mask))[:, None], -1)
    names = ("token", "turn", "trajectory")
    return LossInputs(logprobs, old, torch.where(mask, advantages, 0.0), mask, turns, dict.fromkeys(names, weight))


def token_mean(mask: Tensor) -> Tensor:
    return mask / mask.sum().clamp_min(1)


def row_mean(mask: Tensor) -> Tensor:
    return mask / mask.sum(1, keepdim=True).clamp_min(1) / len(mask)


@cases("prime_opd_loss")
def test_opd_is_that_of_prime_rl(case: dict[str, Any]) -> None:
    logprobs = double(case["log_prob"]).requires_grad_()
    sampler, teacher, mask = (double(case[name]) for name in ("rollout_log_prob", "teacher_log_prob", "response_mask"))
    settings = {"drop": case["settings"]["mask_low"], "penalty": case["settings"]["kl_coef"]}
    weights = mask if case["loss_weights"] is None else double(case["loss_weights"]) * mask
    over = weights / (weights != 0).sum().clamp_min(1)
    algorithm = build("opd", {"opd": settings})
    inputs = inputs_of(case, logprobs, sampler, teacher - sampler, over)
    loss = algorithm.loss(inputs).total(inputs)
    close(loss, case["loss"])
    close(torch.autograd.grad(loss, logprobs)[0], case["grad"])
    dropped = cast("PolicyMethod[Any]", algorithm).surrogate(inputs).policy.clipped
    close((~dropped & inputs.action_mask).double(), case["kept"])


@cases("slime_opd_advantage")
def test_the_gap_is_added_to_advantages_as_in_slime(case: dict[str, Any]) -> None:
    old, teacher, base = (double(case[name]) for name in ("old_log_prob", "teacher_log_prob", "base_advantages"))
    gaps, segments = (teacher - old).flatten(), torch.arange(len(old)).repeat_interleave(old.shape[1])
    rest = F.discounted_rest(gaps, segments, gamma=0.0).reshape(old.shape)
    close(base + case["settings"]["opd_kl_coef"] * rest, case["advantages"])


@cases("tinker_opd_advantage")
def test_the_rest_is_discounted_as_in_tinker(case: dict[str, Any]) -> None:
    """There a token that was not sampled counts as a step as well."""
    sampler, teacher, base = (
        double(case[name]) for name in ("rollout_log_prob", "teacher_log_prob", "base_advantages")
    )
    mask = double(case["response_mask"])
    segments = torch.arange(len(mask)).repeat_interleave(mask.shape[1])
    gaps = ((teacher - sampler) * mask).flatten()
    rest = F.discounted_rest(gaps, segments, gamma=case["settings"]["kl_discount_factor"]).reshape(mask.shape)
    close(base + case["settings"]["kl_penalty_coef"] * rest, case["advantages"])


@cases("trl_iw_opd_loss")
def test_iw_opd_is_that_of_trl(case: dict[str, Any]) -> None:
    logprobs = double(case["log_prob"]).requires_grad_()
    given = case["rollout_log_prob"]
    sampler = logprobs.detach() if given is None else double(given)
    mask = double(case["response_mask"])
    sampled = mask.bool()
    gaps = double(case["teacher_log_prob"]) - sampler
    rows = torch.arange(len(mask))[:, None].expand_as(mask)[sampled]
    weights = torch.zeros_like(mask)
    weights[sampled] = F.remaining_gap_weights(gaps[sampled], rows, gamma=case["settings"]["gamma"])
    close(weights, case["weights"])
    count = case["settings"]["num_items_in_batch"]
    over = token_mean(mask) if count is None else mask / count
    inputs = inputs_of(case, logprobs, sampler, weights * gaps, over)
    loss = build("iw_opd").loss(inputs).total(inputs)
    close(loss, case["loss"])
    close(torch.autograd.grad(loss, logprobs)[0], case["grad"])


@cases("trl_sdpo_loss")
def test_sdpo_is_that_of_trl(case: dict[str, Any]) -> None:
    settings, logprobs = case["settings"], double(case["log_prob"]).requires_grad_()
    given, mask = case["old_log_prob"], double(case["response_mask"])
    old = logprobs.detach() if given is None else double(given)
    taught = double(case["self_distillation_mask"])[:, None].expand_as(mask)
    clips = {"clip_low": settings["epsilon_low"], "clip_high": settings["epsilon_high"]}
    weight = settings["distillation_weight"]
    cap = 0.0 if given is None else settings["distillation_is_clip"] or 0.0
    columns = {"teacher_logprob": double(case["teacher_log_prob"]), "taught": taught}
    advantages = double(case["advantages"])[:, None].expand_as(mask)
    parts = inputs_of(case, logprobs, old, advantages, row_mean(mask))
    inputs = LossInputs(**{**vars(parts), "columns": columns})
    # the policy term has TRL's own average, which is over all tokens where the loss type is dapo
    own = token_mean(mask) if settings["loss_type"] == "dapo" else row_mean(mask)
    output = build("sdpo", {"sdpo": {**clips, "weight": weight, "cap": cap}}).loss(inputs)
    policy = (output.terms["policy"].values * own).sum()
    distillation = output.terms["distillation"].total(inputs)
    close(distillation, weight * case["distillation_loss"])
    close(policy, (1 - weight) * case["policy_loss"])
    close(policy + distillation, case["loss"])
    close(torch.autograd.grad(policy + distillation, logprobs)[0], case["grad"])


def checked(case: dict[str, Any], form: Divergence, over: Tensor, temperature: float = 1.0) -> None:
    logits = double(case["student_logits"]).requires_grad_()
    found = F.vocabulary_divergence(logits / temperature, double(case["teacher_logits"]) / temperature, form)
    close(found, case["divergence"])
    loss = (found * over).sum()
    close(loss, case["loss"])
    close(torch.autograd.grad(loss, logits)[0], case["grad"])


@cases("trl_gkd_jsd")
def test_gkd_is_that_of_trl(case: dict[str, Any]) -> None:
    settings, mask = case["settings"], double(case["response_mask"])
    count = settings["num_items_in_batch"]
    over = token_mean(mask) if count is None else mask / count
    checked(case, Divergence(settings["beta"]), over, settings["temperature"])


@cases("trl_sdpo_logits")
def test_self_distillation_over_the_vocabulary_is_that_of_trl(case: dict[str, Any]) -> None:
    settings = case["settings"]
    form = Divergence(
        settings["distillation_alpha"],
        settings["distillation_topk"] or 0,
        "student",
        bool(settings["distillation_add_tail"]),
    )
    checked(case, form, row_mean(double(case["response_mask"])))


@cases("tinker_sdft_reverse_kl")
def test_the_divergence_over_the_teachers_likeliest_tokens_is_that_of_tinker(case: dict[str, Any]) -> None:
    """Its slots are the teacher's likeliest tokens; those that are not valid are left out here."""
    logprobs = double(case["log_prob"]).requires_grad_()
    teacher, valid = double(case["teacher_log_prob"]), double(case["slot_valid"]).bool()
    found = torch.zeros(logprobs.shape[:2], dtype=torch.float64)
    for row, column in torch.nonzero(valid.any(-1)).tolist():
        slots = valid[row, column]
        form = Divergence(1.0, int(slots.sum()), "teacher")
        found[row, column] = F.vocabulary_divergence(logprobs[row, column][slots], teacher[row, column][slots], form)
    close(found, case["divergence"])
    close(found.sum(), case["loss"])
    if valid.any():
        close(torch.autograd.grad(found.sum(), logprobs)[0], case["grad"])


def test_examples_of_the_pages() -> None:
    old, gaps = double([[-0.1, -0.1]]), double([[-0.4, -0.4]])
    found = F.distillation_surrogate(double([[-0.1, -0.9]]), gaps, old, drop=0.2)
    close(found.loss, [[0.3 * 0.904837418, 0.0]])
    assert found.clipped.tolist() == [[False, True]]
    rest = F.discounted_rest(double([-0.5, 0.25, 1.0]), torch.zeros(3, dtype=torch.long), gamma=0.5)
    assert (2 + rest).tolist() == [1.875, 2.75, 3.0]
    weights = F.remaining_gap_weights(double([1.0, -3.0]), torch.zeros(2, dtype=torch.long), gamma=0.5)
    assert (weights * double([1.0, -3.0])).tolist() == [1.5, -4.125]
    for of_old, expected in ((-2.0, -4.0), (-1.0, -2.0)):
        assert float(F.self_distillation(double(-1.0), double(-3.0), double(of_old), cap=2.0)) == expected


def test_segments_are_apart_and_empty_ones_are_fine() -> None:
    for count in (0, 1):
        empty = torch.zeros(count, dtype=torch.float64)
        assert F.discounted_rest(empty, torch.zeros(count, dtype=torch.long), gamma=0.5).tolist() == [0.0] * count
        assert F.remaining_gap_weights(empty, torch.zeros(count, dtype=torch.long), gamma=0.5).shape == (count,)
    gaps, segments = double([1.0, 2.0, 5.0, 1.0]), torch.tensor([0, 0, 3, 3])
    assert F.discounted_rest(gaps, segments, gamma=1.0).tolist() == [3.0, 2.0, 6.0, 1.0]
