"""verl 0.9: turngym's credit as advantage estimators, and its clipped losses as policy losses. See verl.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from verl import DataProto
from verl.trainer.ppo import core_algos, ray_trainer
from verl.trainer.ppo.core_algos import agg_loss, register_adv_est, register_policy_loss

from turngym.errors import ConfigError
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.base.clipped import ClippedMethod, sampled
from turngym.trainers.algorithms.grpo import GRPO
from turngym.trainers.algorithms.turn_ppo import TurnPPO
from turngym.trainers.core.algorithm import Algorithm, LossInputs, Need
from turngym.trainers.integrations.verl_table import Columns, turn_ids

__all__ = ["PREFIX", "compute_advantage", "estimators", "policy_losses", "register_all"]

PREFIX = "turngym_"
"""Prefix of estimators and losses in verl."""
_KNOWN = frozenset({Need.VALUES, Need.GROUPS, Need.ANCHORS, Need.ENTROPY, Need.OLD_LOGPROBS, Need.REFERENCE_LOGPROBS})
"""Needs that a batch of verl can meet."""

LOSSES: Mapping[str, tuple[type[ClippedMethod[Any]], str]] = {
    "token": (GRPO, "token"),
    "turn_product": (GRPO, "turn_product"),
    "turn_geometric": (GRPO, "turn_geometric"),
    "turn_geometric_by_token": (GRPO, "turn_geometric_by_token"),
    "turn_ppo": (TurnPPO, "turn_product"),
}
"""Name of a policy loss -> the method that it is of, and what its ratio is taken over."""


def estimators() -> dict[str, type[Algorithm[Any]]]:
    """Return the methods whose credit can be assigned in verl, by name.

    Those are left out that gather episodes in their own way, keep a state, or are parts of others.
    """
    found = {}
    for name in sorted(ALGORITHMS):
        try:
            method = build(name)
        except ConfigError:
            continue  # a part, which changes another method
        kind = type(method)
        own = {part for part in ("collect", "update_state") if getattr(kind, part) is not getattr(Algorithm, part)}
        if not own and method.needs <= _KNOWN:
            found[name] = kind
    return found


def policy_losses() -> list[str]:
    """Return the names of the policy losses in verl."""
    return [PREFIX + name for name in LOSSES]


def _estimate(
    name: str,
    *,
    token_level_rewards: Tensor,
    response_mask: Tensor,
    config: Any = None,
    index: Any = None,
    batch: Any = None,
    non_tensor_batch: Mapping[str, Any] | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """Return advantages and the critic's targets, as verl's estimators do.

    Raises:
        ConfigError: The batch lacks what the method needs.
    """
    options = dict((config.get("turngym") if config is not None else None) or {})
    method = build(name, {part: dict(values) for part, values in options.items()})
    columns = Columns(token_level_rewards, response_mask, index, {} if batch is None else batch, non_tensor_batch or {})
    table = columns.table()
    if Need.ANCHORS in method.needs and not columns.has_anchors:
        raise ConfigError(
            f"{name} compares turns that start from the same state, and this batch has no turn_anchors: play with "
            "turngym's agent loop, and train with trainer.use_v1=False, which passes the whole batch."
        )
    if Need.VALUES in method.needs and table.token_value is None:
        raise ConfigError(f"{name} needs a critic: pass critic.enable=True, and trainer.use_v1=False.")
    credit = method.credit(table)
    advantages = credit.advantages if credit.masked is None else credit.advantages.masked_fill(credit.masked, 0.0)
    placed = columns.placed(advantages)
    if credit.returns is None or table.token_value is None:
        return placed, placed.clone()
    known = torch.where(credit.returns.isnan(), table.token_value.to(credit.returns.dtype), credit.returns)
    return placed, columns.placed(known)


def _policy_loss(
    kind: type[ClippedMethod[Any]],
    ratio: str,
    *,
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Return the clipped loss of a micro-batch, averaged as verl is told, and its metrics."""
    clip = config.clip_ratio
    low = clip if config.clip_ratio_low is None else config.clip_ratio_low
    high = clip if config.clip_ratio_high is None else config.clip_ratio_high
    dual = config.get("clip_ratio_c", 3.0)
    method = kind(kind.Config(clip_low=low, clip_high=high, dual_clip=dual, ratio=ratio, kl_coef=0.0))
    mask = response_mask.bool()
    credited = torch.where(mask, advantages, torch.zeros_like(advantages))
    inputs = LossInputs(log_prob, old_log_prob, credited, mask, turn_ids(mask), weights={})
    policy, _, log_ratio = method.surrogate(inputs)
    losses = sampled(policy.loss, inputs)
    if rollout_is_weights is not None:
        losses = losses * rollout_is_weights
    total = agg_loss(loss_mat=losses, loss_mask=mask, loss_agg_mode=loss_agg_mode, **config.global_batch_info)
    count = mask.sum().clamp_min(1)
    return total, {
        "actor/pg_clipfrac": float((policy.clipped & mask).sum() / count),
        "actor/ppo_kl": float(-(log_ratio.detach() * mask).sum() / count),
        "actor/pg_clipfrac_lower": float((policy.clipped_lower & mask).sum() / count),
    }


def compute_advantage(data: DataProto, adv_estimator: Any, *arguments: Any, **options: Any) -> DataProto:
    """Compute advantages as verl's function of that name does, and hand the whole batch to turngym's estimators.

    verl hands an estimator rewards, mask and group alone. Turns, anchors and values of a critic are in the batch.
    """
    name = str(getattr(adv_estimator, "value", adv_estimator))
    if not name.startswith(PREFIX):
        return _of_verl(data, adv_estimator, *arguments, **options)
    if "response_mask" not in data.batch.keys():  # noqa: SIM118  (a TensorDict)
        data.batch["response_mask"] = ray_trainer.compute_response_mask(data)
    data.batch["advantages"], data.batch["returns"] = core_algos.get_adv_estimator_fn(name)(
        token_level_rewards=data.batch["token_level_rewards"],
        response_mask=data.batch["response_mask"],
        index=data.non_tensor_batch.get("uid"),
        config=options.get("config"),
        batch=data.batch,
        non_tensor_batch=data.non_tensor_batch,
    )
    return data


_of_verl: Callable[..., DataProto] = ray_trainer.compute_advantage


def register_all() -> None:
    """Register every estimator and policy loss, and let verl's trainer call :func:`compute_advantage`."""
    for name in estimators():
        if PREFIX + name not in core_algos.ADV_ESTIMATOR_REGISTRY:
            register_adv_est(PREFIX + name)(partial(_estimate, name))
    for name, (kind, ratio) in LOSSES.items():
        register_policy_loss(PREFIX + name)(partial(_policy_loss, kind, ratio))
    ray_trainer.compute_advantage = compute_advantage
