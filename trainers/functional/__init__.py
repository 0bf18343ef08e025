"""The mathematics of the trainers: pure functions of tensors, without configuration and without state."""

from turngym.trainers.core.weights import NORMALISATIONS, loss_weights
from turngym.trainers.functional.aggregation import AGGREGATIONS, aggregate
from turngym.trainers.functional.baselines import leave_one_out_baselines, length_weighted_baselines
from turngym.trainers.functional.corrections import (
    Divergence,
    Reduction,
    normalised_weights,
    over_segments,
    truncated_weights,
    within_limits,
    without_veto,
)
from turngym.trainers.functional.entropy import (
    hinge_penalty,
    indicator_penalty,
    released_smoothing_weight,
    smoothing_weight,
)
from turngym.trainers.functional.gae import discounted_returns, token_gae, turn_gae
from turngym.trainers.functional.groups import GroupStatistics, Singleton, group_advantages, group_statistics
from turngym.trainers.functional.kl import KLEstimator, adaptive_kl_factor, kl_penalty, sampled_divergence
from turngym.trainers.functional.layout import TokenRows
from turngym.trainers.functional.losses import ClippedSurrogate, ValueLoss, clipped_surrogate, value_loss
from turngym.trainers.functional.moments import Moments
from turngym.trainers.functional.ratios import (
    MAX_LOG_RATIO,
    exp_clamped,
    log_ratios,
    proximal_logprobs,
    token_ratio,
    turn_geometric_ratio,
    turn_geometric_ratio_by_token,
    turn_lengths,
    turn_mean,
    turn_product_ratio,
    turn_sum,
)
from turngym.trainers.functional.roles import RoleAdvantages, joint_keys, role_advantages
from turngym.trainers.functional.surrogates import (
    cispo_surrogate,
    gmpo_surrogate,
    luspo_surrogate,
    overlong_penalty,
    sapo_loss,
)
from turngym.trainers.functional.whitening import explained_variance, standardise, whiten

__all__ = [
    "AGGREGATIONS",
    "MAX_LOG_RATIO",
    "NORMALISATIONS",
    "ClippedSurrogate",
    "Divergence",
    "GroupStatistics",
    "KLEstimator",
    "Moments",
    "Reduction",
    "RoleAdvantages",
    "Singleton",
    "TokenRows",
    "ValueLoss",
    "adaptive_kl_factor",
    "aggregate",
    "cispo_surrogate",
    "clipped_surrogate",
    "discounted_returns",
    "exp_clamped",
    "explained_variance",
    "gmpo_surrogate",
    "group_advantages",
    "group_statistics",
    "hinge_penalty",
    "indicator_penalty",
    "joint_keys",
    "kl_penalty",
    "leave_one_out_baselines",
    "length_weighted_baselines",
    "log_ratios",
    "loss_weights",
    "luspo_surrogate",
    "normalised_weights",
    "over_segments",
    "overlong_penalty",
    "proximal_logprobs",
    "released_smoothing_weight",
    "role_advantages",
    "sampled_divergence",
    "sapo_loss",
    "smoothing_weight",
    "standardise",
    "token_gae",
    "token_ratio",
    "truncated_weights",
    "turn_gae",
    "turn_geometric_ratio",
    "turn_geometric_ratio_by_token",
    "turn_lengths",
    "turn_mean",
    "turn_product_ratio",
    "turn_sum",
    "value_loss",
    "whiten",
    "within_limits",
    "without_veto",
]
