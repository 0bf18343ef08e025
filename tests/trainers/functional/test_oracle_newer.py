"""Losses and advantages of newer methods against the vectors of prime-rl, SkyRL, TRL, slime, verl and released code."""

from typing import Any

import torch
from oracle import Vector, every
from test_oracle_credit import check as check_credit
from test_oracle_credit import outcome_table
from test_oracle_losses import rows_as_turns
from torch import Tensor

from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.clipped import PolicyMethod, Surrogate
from turngym.trainers.core.algorithm import LossInputs


def inputs_of(vector: Vector, logprobs: Tensor, **columns: Tensor) -> LossInputs:
    """A vector as a loss sees it; the token mean is the only normalisation."""
    mask = vector.mask()
    advantages = vector.real(vector["advantages"])
    if advantages.dim() == 1:
        advantages = advantages[:, None].expand(mask.shape)
    reference = vector.get("ref_log_prob")
    return LossInputs(
        logprobs=logprobs,
        old_logprobs=vector.real(vector.get("old_log_prob", vector.get("rollout_log_prob"))),
        advantages=advantages.masked_fill(~mask, 0.0),
        action_mask=mask,
        turn_ids=rows_as_turns(mask),
        weights={"token": mask.to(vector.dtype) / mask.sum().clamp_min(1), "turn": torch.zeros_like(logprobs)},
        reference_logprobs=None if reference is None else vector.real(reference),
        columns=columns,
    )


def surrogate_of(name: str, settings: dict[str, Any], inputs: LossInputs) -> Surrogate:
    method = build(f"grpo+{name}", {"grpo": {"kl_coef": 0.0}, name: settings})
    assert isinstance(method, PolicyMethod)
    return method.surrogate(inputs)


def compare(vector: Vector, loss: Tensor, logprobs: Tensor) -> None:
    """A loss and its gradient, which is absent where nothing is sampled."""
    gradient = torch.zeros_like(logprobs)
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, logprobs)
    vector.close(loss, vector["loss"])
    vector.close(gradient, vector["grad"])


# Advantages


def outcomes(vector: Vector, rewards: str = "rewards") -> Vector:
    """A vector of one number an episode as one of rows of one token."""
    numbers = vector[rewards]
    column = [[number] for number in vector["advantages"]]
    index = vector.get("index") or ["a"] * len(numbers)
    rows = {"token_level_rewards": [[number] for number in numbers], "response_mask": [[1]] * len(numbers)}
    return vector.like({**vector, **rows, "advantages": column, "index": index})


@every("prime_maxrl_advantage")
def test_maxrl(vector: Vector) -> None:
    whole = outcomes(vector)
    check_credit(whole, outcome_table(whole), "maxrl")


@every("skyrl_maxrl_advantage")
def test_maxrl_of_skyrl(vector: Vector) -> None:
    check_credit(vector, outcome_table(vector), "maxrl", singleton="raw", epsilon=vector.settings["epsilon"])


# Losses


@every("prime_dppo_loss")
def test_dppo(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    inputs = inputs_of(
        vector.like({**vector, "advantages": (settings["adv_tau"] * inputs.advantages).tolist()}), logprobs
    )
    chosen = {
        "low": settings["dppo_mask_low"],
        "high": settings["dppo_mask_high"],
        "penalty_coef": settings["kl_tau"],
    }
    method = build("grpo+dppo", {"grpo": {"normalisation": "token", "kl_coef": 0.0}, "dppo": chosen})
    compare(vector, method.loss(inputs).total(inputs), logprobs)
    clipped = surrogate_of("dppo", chosen, inputs).policy.clipped
    vector.close(
        (~clipped).to(vector.dtype)[inputs.action_mask], vector.real(vector["kept"])[inputs.action_mask].tolist()
    )


def check_dppo_of_verl(vector: Vector, divergence: str) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    limits = {"low": settings["clip_ratio_low"], "high": settings["clip_ratio_high"], "cap": settings["clip_ratio_c"]}
    found = surrogate_of("dppo", {"divergence": divergence, "penalty_coef": 0.0, **limits}, inputs)
    compare(vector, F.aggregate(found.policy.loss, inputs.action_mask, settings["loss_agg_mode"]), logprobs)


@every("verl_dppo_tv")
def test_dppo_of_verl(vector: Vector) -> None:
    check_dppo_of_verl(vector, "tv")


@every("verl_dppo_kl")
def test_dppo_with_kl_of_verl(vector: Vector) -> None:
    check_dppo_of_verl(vector, "kl")


@every("trl_vespo_loss")
def test_vespo(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    given = vector.get("importance_sampling_ratio")
    inputs = inputs_of(vector, logprobs)
    if given is not None:  # the trainer's over the sampler's
        ratio = vector.real(given)
        old = inputs.old_logprobs - (ratio if ratio.dim() == 2 else ratio[:, None]).log()
        inputs = inputs_of(vector.like({**vector, "old_log_prob": old.tolist()}), logprobs)
    chosen = {
        "power_positive": settings["k_pos"],
        "decay_positive": settings["lambda_pos"],
        "power_negative": settings["k_neg"],
        "decay_negative": settings["lambda_neg"],
    }
    found = surrogate_of("vespo", chosen, inputs)
    total = (found.policy.loss * inputs.action_mask).sum()
    count = settings["num_items_in_batch"] or inputs.action_mask.sum().clamp_min(1)
    compare(vector, total / count, logprobs)
