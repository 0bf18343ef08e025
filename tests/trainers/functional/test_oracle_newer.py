"""Losses and advantages of newer methods against the vectors of prime-rl, SkyRL, TRL, slime, verl and released code."""

from dataclasses import replace
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
from turngym.trainers.algorithms.clip_cov import covariances
from turngym.trainers.algorithms.dro import DRO
from turngym.trainers.algorithms.kl_cov import KLCov, highest
from turngym.trainers.algorithms.m2po import least_of
from turngym.trainers.algorithms.opsm import OPSM
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


@every("verl_gpg_advantage")
def test_gpg(vector: Vector) -> None:
    check_credit(vector, outcome_table(vector), "gpg", singleton="raw", divisor=vector.settings["f_norm"])


@every("verl_grpo_passk_advantage")
def test_pass_k(vector: Vector) -> None:
    check_credit(vector, outcome_table(vector), "pass_k", scale_by_std=vector.settings["norm_adv_by_std"])


@every("lite_ppo_advantage")
def test_lite_ppo(vector: Vector) -> None:
    whole = outcomes(vector)
    check_credit(whole, outcome_table(whole), "lite_ppo", singleton="raw", epsilon=vector.settings["eps"])


@every("bnpo_advantage")
def test_bnpo(vector: Vector) -> None:
    whole, settings = outcomes(vector), vector.settings
    ends = {"lowest": settings["min_value"], "highest": settings["max_value"]}
    check_credit(whole, outcome_table(whole), "bnpo", singleton="raw", **ends)


@every("g2rpo_gaussian")
def test_g2rpo(vector: Vector) -> None:
    whole = outcomes(vector)
    check_credit(whole, outcome_table(whole), "g2rpo")


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


@every("slime_unbiased_kl")
def test_unbiased_kl(vector: Vector) -> None:
    """Their clamped form is bounded after the product; without a ratio it is that of other methods."""
    logprobs, settings, mask = vector.real(vector["log_prob"]).requires_grad_(), vector.settings, vector.mask()
    log_ratio = logprobs - vector.real(vector["old_log_prob"])
    ratio = log_ratio.exp() if settings["unbiased"] else torch.ones_like(logprobs)
    kind = settings["kl_loss_type"]
    bound = 10.0 if kind == "low_var_kl" else float("inf")
    estimator = "k3" if kind == "low_var_kl" else kind
    found = F.weighted_kl(logprobs, vector.real(vector["ref_log_prob"]), ratio, estimator, bound=bound)
    vector.close(found[mask], vector.real(vector["kl"])[mask].tolist())
    rows = (found * mask).sum(-1) / mask.sum(-1).clamp_min(1)
    compare(vector, rows.mean(), logprobs)


@every("trl_unbiased_kl")
def test_unbiased_kl_in_a_loss(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    level = "turn_geometric" if settings["importance_sampling_level"] == "sequence" else "token"
    chosen = {
        "clip_low": settings["epsilon_low"],
        "clip_high": settings["epsilon_high"],
        "kl_coef": settings["beta"],
        "kl_estimator": "rk3",
        "ratio": level,
        "normalisation": "token",
    }
    inputs = inputs_of(vector, logprobs)
    mask = inputs.action_mask
    weights = dict(inputs.weights)
    if settings["loss_type"] == "grpo":  # a row without a token counts as a row
        weights["token"] = mask / (mask.sum(-1, keepdim=True).clamp_min(1) * len(mask)).to(vector.dtype)
    inputs = replace(inputs, weights=weights)
    compare(vector, build("grpo", {"grpo": chosen}).loss(inputs).total(inputs), logprobs)


def kept_by_opsm(vector: Vector) -> tuple[Tensor, LossInputs]:
    inputs = inputs_of(vector, vector.real(vector["log_prob"]))
    method = build("grpo+opsm", {"opsm": {"threshold": vector.settings["delta"]}})
    assert isinstance(method, OPSM)
    return method.kept(inputs), inputs


@every("slime_opsm_mask")
def test_opsm(vector: Vector) -> None:
    kept, inputs = kept_by_opsm(vector)
    mask = inputs.action_mask
    vector.close(kept.to(vector.dtype)[mask], vector.real(vector["keep"])[mask].tolist())


@every("trl_opsm_mask")
def test_opsm_of_trl(vector: Vector) -> None:
    kept, inputs = kept_by_opsm(vector)
    mask = inputs.action_mask
    expected = vector.real(vector["keep"])[:, None].expand(mask.shape)
    vector.close(kept.to(vector.dtype)[mask], expected[mask].tolist())


@every("areal_m2po_mask")
def test_m2po(vector: Vector) -> None:
    mask = vector.mask()
    squares = ((vector.real(vector["old_log_prob"]) - vector.real(vector["prox_log_prob"])) ** 2)[mask]
    kept = least_of(squares, vector.settings["m2_threshold"])
    vector.close(kept.to(vector.dtype), vector.real(vector["kept"])[mask].tolist())
    if len(squares):
        vector.close(squares[kept].mean(), vector["second_moment"])


@every("verl_clip_cov")
def test_clip_cov(vector: Vector) -> None:
    """There every candidate is dropped, of those that PPO has not clipped."""
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    mask = inputs.action_mask
    clips = {"clip_low": settings["clip_ratio_low"], "clip_high": settings["clip_ratio_high"]}
    method = build("grpo", {"grpo": {"kl_coef": 0.0, **clips}})
    assert isinstance(method, PolicyMethod)
    found = torch.full_like(logprobs, float("inf"))
    found[mask] = covariances(logprobs.detach()[mask], inputs.advantages[mask], torch.ones(int(mask.sum())).bool())
    dropped = (found > settings["clip_cov_lb"]) & (found < settings["clip_cov_ub"])
    dropped &= ~method.surrogate(inputs).policy.clipped
    assert int(dropped.sum()) == vector["candidates"]
    inputs = replace(inputs, advantages=inputs.advantages * ~dropped)
    loss = method.surrogate(inputs).policy.loss
    compare(vector, F.aggregate(loss, mask, settings["loss_agg_mode"]), logprobs)


@every("verl_kl_cov")
def test_kl_cov(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    mask = inputs.action_mask
    everything = torch.ones(int(mask.sum())).bool()
    found = covariances(logprobs.detach()[mask], inputs.advantages[mask], everything)
    chosen = torch.zeros_like(mask)
    chosen[mask] = highest(found, everything, settings["kl_cov_ratio"])
    vector.close(chosen.to(vector.dtype), vector["penalised"])
    inputs = replace(inputs, columns={"kl_cov_chosen": chosen})
    method = build("grpo+kl_cov", {"grpo": {"kl_coef": 0.0}, "kl_cov": {"coef": settings["ppo_kl_coef"]}})
    assert isinstance(method, KLCov)
    surrogate = method.surrogate(inputs)
    penalty = method.penalty(surrogate, inputs)
    assert penalty is not None
    compare(vector, F.aggregate(surrogate.policy.loss + penalty, mask, settings["loss_agg_mode"]), logprobs)


@every("verl_dro")
def test_dro(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    method = build("grpo+dro", {"grpo": {"kl_coef": 0.0}, "dro": {"beta": settings["dro_beta"]}})
    assert isinstance(method, DRO)
    found = method.surrogate(inputs)
    penalty = method.penalty(found, inputs)
    assert penalty is not None
    compare(vector, F.aggregate(found.policy.loss + penalty, inputs.action_mask, settings["loss_agg_mode"]), logprobs)


@every("topr_sppo_loss")
def test_topr_and_soft_ppo(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    if settings["kind"] == "topr":
        found = surrogate_of("topr", {}, inputs)
    else:
        found = surrogate_of("soft_ppo", {"width": settings["epsilon"]}, inputs)
    compare(vector, F.aggregate(found.policy.loss, inputs.action_mask, "token-mean"), logprobs)


@every("rec_loss")
def test_rec(vector: Vector) -> None:
    logprobs, settings = vector.real(vector["log_prob"]).requires_grad_(), vector.settings
    inputs = inputs_of(vector, logprobs)
    is_gspo = settings["clip_mode"] == "gspo-one-side"
    weights = {"none": "none", "advantage": "advantage"}
    chosen = {
        "mask": settings["clip_mode"].removeprefix("gspo-").replace("-", "_"),
        "weight": weights.get(settings["weight"], "ratio"),
        "low": settings["epsilon_low"],
        "high": settings["epsilon_high"],
        "far_low": settings["epsilon_low_prime"],
        "far_high": settings["epsilon_high_prime"],
    }
    assert settings["regularizer"] == "none" and settings["temp"] == 1.0
    level = "turn_geometric" if is_gspo else "token"
    method = build("grpo+rec", {"grpo": {"kl_coef": 0.0, "ratio": level}, "rec": chosen})
    assert isinstance(method, PolicyMethod)
    losses = method.surrogate(inputs).policy.loss
    mode = "seq-mean-token-mean" if is_gspo else "token-mean"
    compare(vector, F.aggregate(losses, inputs.action_mask, mode), logprobs)
