"""Losses and their gradients against the vectors of verl, TRL and the released code of EPO, in both precisions."""

from typing import Any

import torch
from oracle import Vector, every
from torch import Tensor

from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import LossInputs


def rows_as_turns(mask: Tensor) -> Tensor:
    """A row of a vector is one completion: one turn."""
    return torch.where(mask, torch.arange(len(mask))[:, None].expand_as(mask), -1)


def inputs_of(vector: Vector, logprobs: Tensor) -> LossInputs:
    """A vector of verl as the loss of an algorithm sees it."""
    mask = vector.mask()
    return LossInputs(
        logprobs=logprobs,
        old_logprobs=vector.real(vector["old_log_prob"]),
        advantages=vector.real(vector["advantages"]),
        action_mask=mask,
        turn_ids=rows_as_turns(mask),
        weights={},
    )


def check(vector: Vector, name: str, **settings: Any) -> None:
    """An algorithm's loss, averaged as verl averages it, and its gradient; then verl's clip fractions."""
    logprobs = vector.real(vector["log_prob"]).requires_grad_()
    inputs = inputs_of(vector, logprobs)
    clips = {"clip_low": vector.settings["clip_ratio_low"], "clip_high": vector.settings["clip_ratio_high"]}
    surrogate = build(name, {name: {**clips, **settings}}).surrogate(inputs)  # type: ignore[attr-defined]
    loss = F.aggregate(surrogate.policy.loss, inputs.action_mask, vector.settings["loss_agg_mode"])
    (gradient,) = torch.autograd.grad(loss, logprobs)
    vector.close(loss, vector["loss"])
    vector.close(gradient, vector["grad_log_prob"])
    vector.close(-surrogate.log_ratio[inputs.action_mask].mean(), vector["metrics"]["actor/ppo_kl"])
    clipped = surrogate.policy.clipped[inputs.action_mask].to(vector.dtype)
    vector.close(clipped.mean(), vector["metrics"]["actor/pg_clipfrac"])
    lower = surrogate.policy.clipped_lower[inputs.action_mask].to(vector.dtype)
    vector.close(lower.mean(), vector["metrics"]["actor/pg_clipfrac_lower"])


@every("verl_ppo_clip")
def test_ppo_clip(vector: Vector) -> None:
    check(vector, "grpo", dual_clip=vector.settings["clip_ratio_c"])


@every("verl_gspo")
def test_gspo(vector: Vector) -> None:
    """verl's gradient is that of GSPO-token."""
    check(vector, "gspo", ratio="turn_geometric_by_token")


@every("verl_cispo")
def test_cispo(vector: Vector) -> None:
    check(vector, "cispo")


@every("verl_geo_mean")
def test_gmpo(vector: Vector) -> None:
    """verl takes a plain mean over rows, those without a token included, whatever mode it is told."""
    logprobs = vector.real(vector["log_prob"]).requires_grad_()
    inputs = inputs_of(vector, logprobs)
    clips = {"clip_low": vector.settings["clip_ratio_low"], "clip_high": vector.settings["clip_ratio_high"]}
    surrogate = build("gmpo", {"gmpo": clips}).surrogate(inputs)  # type: ignore[attr-defined]
    rows = surrogate.policy.loss.masked_fill(~inputs.action_mask, 0.0).sum(-1) / vector.mask().sum(-1).clamp_min(1)
    loss = rows.mean()
    (gradient,) = torch.autograd.grad(loss, logprobs)
    vector.close(loss, vector["loss"])
    vector.close(gradient, vector["grad_log_prob"])


@every("verl_value_loss")
def test_value_loss(vector: Vector) -> None:
    values, mask = vector.real(vector["vpreds"]).requires_grad_(), vector.mask()
    found = F.value_loss(
        values,
        vector.real(vector["values"]),
        vector.real(vector["returns"]),
        clip=vector.settings["cliprange_value"],
    )
    loss = F.aggregate(found.loss, mask, vector.settings["loss_agg_mode"])
    (gradient,) = torch.autograd.grad(loss, values)
    vector.close(loss, vector["loss"])
    vector.close(gradient, vector["grad_vpreds"])
    vector.close(found.clipped[mask].to(vector.dtype).mean(), vector["clipfrac"])


@every("verl_kl")
def test_kl(vector: Vector) -> None:
    logprobs = vector.real(vector["logprob"]).requires_grad_()
    found = F.kl_penalty(logprobs, vector.real(vector["ref_logprob"]), vector.settings["kl_penalty"])
    (gradient,) = torch.autograd.grad(found.sum(), logprobs)
    vector.close(found, vector["kl"])
    vector.close(gradient, vector["grad_of_sum"])


# TRL


def trl_surrogate(vector: Vector, logprobs: Tensor, mask: Tensor) -> Tensor:
    """The policy loss of each token by TRL's name of it, before anything is averaged."""
    settings, turns = vector.settings, rows_as_turns(mask)
    log_ratio = F.log_ratios(logprobs, vector.real(vector["old_logps"]), mask)
    advantages = vector.real(vector["advantages"])[:, None].expand(mask.shape)
    level = F.turn_geometric_ratio if settings["importance_sampling_level"] == "sequence" else F.token_ratio
    clips = {"clip_low": settings["epsilon_low"], "clip_high": settings["epsilon_high"]}
    ratio, bound = level(log_ratio, turns), settings["delta"] or 0.0
    if settings["loss_type"] == "cispo":  # TRL names the upper end of the weight itself, and has no lower end
        wide = {"clip_low": 1.0, "clip_high": settings["epsilon_high"] - 1}
        return F.cispo_surrogate(ratio, logprobs, advantages, **wide).loss
    if settings["loss_type"] == "sapo":
        return F.sapo_loss(
            ratio,
            advantages,
            temperature_positive=settings["sapo_temperature_pos"],
            temperature_negative=settings["sapo_temperature_neg"],
        )
    if settings["loss_type"] == "luspo":
        return F.luspo_surrogate(log_ratio, advantages, turns, dual_clip=bound, **clips).loss
    return F.clipped_surrogate(ratio, advantages, dual_clip=bound, **clips).loss


def trl_average(losses: Tensor, mask: Tensor, settings: dict[str, Any]) -> Tensor:
    kind = settings["loss_type"]
    if kind in ("grpo", "sapo"):  # unlike verl, a row without a token counts as a row
        return ((losses * mask).sum(-1) / mask.sum(-1).clamp_min(1)).mean()
    if kind == "dr_grpo":
        return F.aggregate(losses, mask, "token-sum-norm", constant=len(mask) * settings["max_completion_length"])
    return F.aggregate(losses, mask, "token-mean")


@every("trl_grpo_loss")
def test_trl(vector: Vector) -> None:
    settings, mask = vector.settings, vector.mask("completion_mask", "tool_mask")
    logprobs = vector.real(vector["logps"]).requires_grad_()
    losses = trl_surrogate(vector, logprobs, mask)
    divergence = settings["beta"] * F.kl_penalty(logprobs, vector.real(vector["ref_logps"]), "k3")
    if settings["loss_type"] == "luspo":
        # A completion's one loss is its length times its surrogate, and stands at each of its tokens; the divergences
        # of its tokens are summed. Both are averaged over completions, those without a token included.
        policy = (losses * mask).sum(-1) / mask.sum(-1).clamp_min(1)
        total = (policy + (divergence * mask).sum(-1)).mean()
    else:
        total = trl_average(losses + divergence, mask, settings)
    (gradient,) = torch.autograd.grad(total, logprobs)
    vector.close(total, vector["loss"])
    vector.close(gradient, vector["grad_logps"])


# EPO


@every("epo_entropy_smooth")
def test_epo(vector: Vector) -> None:
    """In its mode "seq" that code averages a row over padding too; the padded mean is therefore taken here by hand."""
    settings, mask, entropy = vector.settings, vector.mask(), vector.real(vector["entropy"])
    reference = vector.real(vector["entropy_history"])[vector["rollout_step"]][:, None]
    judged = entropy if settings["mask_mode"] == "token" else entropy.mean(-1, keepdim=True).expand_as(entropy)
    outside = F.indicator_penalty(judged, reference, low=settings["min_ratio"], high=settings["max_ratio"])
    penalty = settings["out_range_penalty"] * outside
    vector.close(penalty, vector["penalty_mask"])
    vector.close(1 - outside.mean(), vector["in_range_ratio"])
    mode, weight = settings["loss_agg_mode"], F.released_smoothing_weight(settings["epoch"], settings["max_epochs"])
    vector.close(vector.real(weight), vector["epoch_weight"])
    entropy_loss, penalty_loss = F.aggregate(entropy, mask, mode), F.aggregate(penalty, mask, mode)
    vector.close(entropy_loss, vector["entropy_loss"])
    vector.close(penalty_loss, vector["penalty_loss_unweighted"])
    vector.close(weight * penalty_loss, vector["penalty_loss_epoch_weighted"])
    smoothing = settings["entropy_smooth_coeff"]
    for factor, column in ((weight, "epoch_weighted"), (1.0, "unweighted")):
        added = -(entropy_loss - smoothing * factor * penalty_loss) * settings["entropy_coeff"]
        vector.close(added, vector[f"total_added_to_policy_loss_{column}"])
