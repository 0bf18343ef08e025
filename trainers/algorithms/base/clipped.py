"""The base of methods with a clipped policy loss: one configuration, one loss, the same metrics for all of them."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.core.algorithm import Algorithm, ConfigT, LossInputs, LossOutput, Need, Normalisation, Term
from turngym.trainers.core.turn_table import TurnTable

RatioName: TypeAlias = Literal["token", "turn_product", "turn_geometric", "turn_geometric_by_token"]


class RatioLevel(NamedTuple):
    """Level of the importance ratio.

    Args:
        ratio: Log-ratios and turn ids, both ``[batch, token]``, to the ratio at each token.
        over: The normalisation under which every ratio counts once.
    """

    ratio: Callable[[Tensor, Tensor], Tensor]
    over: Normalisation


RATIOS: dict[str, RatioLevel] = {
    "token": RatioLevel(F.token_ratio, "token"),
    "turn_product": RatioLevel(F.turn_product_ratio, "turn"),
    "turn_geometric": RatioLevel(F.turn_geometric_ratio, "turn"),
    "turn_geometric_by_token": RatioLevel(F.turn_geometric_ratio_by_token, "turn"),
}


def one_of(setting: str, value: str, alternatives: tuple[str, ...]) -> None:
    """Raise if a setting is none of its alternatives.

    Raises:
        ConfigError: It is none of them.
    """
    if value not in alternatives:
        raise ConfigError(f"{setting} must be one of {', '.join(alternatives)}; got {value!r}.")


def within(setting: str, value: float, low: float, high: float = float("inf")) -> None:
    """Raise if a setting is outside of ``[low, high]``, or infinite.

    Raises:
        ConfigError: It is outside, or nan.
    """
    if not low <= value <= high or math.isinf(value):
        limits = (
            f"at least {low:g}" + " and finite" * math.isinf(value)
            if high == float("inf")
            else f"from {low:g} to {high:g}"
        )
        raise ConfigError(f"{setting} must be {limits}, got {value}.")


@dataclass(frozen=True)
class ClippedConfig:
    """Settings of every method with a clipped policy loss: a loss with nothing but the clip.

    A method's own configuration changes the defaults to those of its paper; its page names the source of each.
    """

    keeps: ClassVar[frozenset[str]] = frozenset()
    """Settings that no preset changes, because the method is defined by them."""

    clip_low: float = 0.2
    """Clip range below a ratio of 1."""
    clip_high: float = 0.2
    """Clip range above a ratio of 1."""
    dual_clip: float = 0.0
    """Maximum ratio for negative advantages; 0 for no bound."""
    ratio: RatioName = "token"
    """Level of the importance ratio: per token, the product over a turn, or the geometric mean over a turn,
    differentiated as such or, by token, through each token's own log-probability only."""
    normalisation: Normalisation = "token"
    """Normalisation of the policy loss."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    kl_estimator: F.KLEstimator = "k3"
    """KL estimator; a trailing + uses its value with the gradient of k2, a leading r multiplies it by the importance
    ratio, gradient included."""
    invalid_penalty: float = 0.0
    """Penalty for an invalid action."""

    def __post_init__(self) -> None:
        within("clip_low", self.clip_low, 0, 1)
        within("clip_high", self.clip_high, 0)
        if self.dual_clip != 0 and not self.dual_clip > 1:
            raise ConfigError(f"dual_clip must be greater than 1, got {self.dual_clip}. Pass 0 to switch it off.")
        one_of("ratio", self.ratio, get_args(RatioName))
        one_of("normalisation", self.normalisation, F.NORMALISATIONS)
        within("entropy_coef", self.entropy_coef, 0)
        within("kl_coef", self.kl_coef, 0)
        one_of("kl_estimator", self.kl_estimator, get_args(F.KLEstimator))
        if self.kl_coef > 0 and self.kl_estimator == "k1":
            raise ConfigError(
                "kl_estimator='k1' does nothing in a loss: the expectation of its gradient is 0. Take k2, k3 or k1+, "
                "which has the value of k1 and the gradient of k2."
            )
        within("invalid_penalty", self.invalid_penalty, 0)


ClippedConfigT = TypeVar("ClippedConfigT", bound=ClippedConfig)


class Surrogate(NamedTuple):
    """The policy loss of a micro-batch per token, and what it was made of."""

    policy: F.ClippedSurrogate
    ratio: Tensor
    log_ratio: Tensor


class PolicyMethod(Algorithm[ConfigT]):
    """A method whose policy loss is a surrogate that modifiers can access."""

    @property
    @abstractmethod
    def normalisation(self) -> str:
        """The normalisation of the policy loss."""

    @abstractmethod
    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the per-token policy loss before normalisation."""

    @abstractmethod
    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with its importance ratio taken over something else.

        Raises:
            ConfigError: The method has no importance ratio.
        """

    @property
    def weighs_sampler(self) -> bool:
        """True if the loss has weights of the trainer's policy over the sampler's besides its ratios."""
        return False

    @property
    def reads_advantages(self) -> bool:
        """True if the loss depends on the advantages."""
        return True

    @property
    def changes_policy_loss(self) -> bool:
        """True if a modifier has changed the policy loss or what it is computed from."""
        return False

    def without_entropy_bonus(self) -> Self:
        """Return the method without an entropy bonus, for modifiers with their own."""
        return self


class ClippedMethod(PolicyMethod[ClippedConfigT]):
    """Clipped policy loss, optionally with entropy and KL divergence from a reference policy."""

    def __init__(self, config: ClippedConfigT) -> None:
        super().__init__(config)
        self.ratio_level = RATIOS[config.ratio]

    @property
    def needs(self) -> frozenset[Need]:
        """A reference policy and the entropy, where they have a weight."""
        needs = {Need.REFERENCE_LOGPROBS} if self.config.kl_coef > 0 else set()
        return frozenset(needs | ({Need.ENTROPY} if self.config.entropy_coef > 0 else set()))

    @property
    def normalisation(self) -> str:
        """The normalisation of the policy loss."""
        return self.config.normalisation

    @property
    def normalisations(self) -> frozenset[str]:
        """That of the loss, and those of the metrics."""
        return frozenset({self.normalisation, "token", "turn", self.ratio_level.over})

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with its importance ratio taken over something else."""
        changed = copy.copy(self)
        changed.ratio_level = level
        return changed

    def without_entropy_bonus(self) -> Self:
        """Return the method with ``entropy_coef`` 0."""
        changed = copy.copy(self)
        changed.config = replace(self.config, entropy_coef=0.0)
        return changed

    def penalised_rewards(self, table: TurnTable) -> Tensor:
        """Return the reward of each turn, less the penalty where its action was invalid."""
        return table.reward - table.invalid_penalties(self.config.invalid_penalty)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the per-token policy loss before normalisation."""
        log_ratio = F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        ratio = self.ratio_level.ratio(log_ratio, inputs.turn_ids)
        policy = F.clipped_surrogate(
            ratio,
            inputs.advantages,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
            dual_clip=self.config.dual_clip,
        )
        return Surrogate(policy, ratio, log_ratio)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the policy term, the terms that have a weight, and the metrics."""
        surrogate = self.surrogate(inputs)
        terms = {"policy": Term(surrogate.policy.loss, self.normalisation)}
        metrics = policy_metrics(surrogate, self.ratio_level.over)
        if inputs.entropy is not None:
            entropy = sampled(inputs.entropy, inputs)
            metrics["entropy"] = Term(entropy.detach(), "token")
            if self.config.entropy_coef > 0:
                terms["entropy_bonus"] = Term(-self.config.entropy_coef * entropy, self.normalisation)
        if self.config.kl_coef > 0:
            reference = required(inputs.reference_logprobs, "reference_logprobs")
            divergence = sampled(_divergence(inputs.logprobs, reference, surrogate, self.config.kl_estimator), inputs)
            metrics["kl_reference"] = Term(divergence.detach(), "token")
            terms["kl_penalty"] = Term(self.config.kl_coef * divergence, self.normalisation)
        return LossOutput(terms, metrics)


def _divergence(logprobs: Tensor, reference: Tensor, surrogate: Surrogate, estimator: str) -> Tensor:
    """Return the estimate of the KL divergence from the reference policy of each token."""
    if estimator.startswith("r"):
        return F.weighted_kl(logprobs, reference, surrogate.ratio, estimator.removeprefix("r"))
    return F.kl_penalty(logprobs, reference, estimator)


def policy_metrics(surrogate: Surrogate, over: str) -> dict[str, Term]:
    """Return the metrics of a policy loss: clip fractions and mean ratio, and the k1 estimate of new against old."""
    policy, ratio = surrogate.policy, surrogate.ratio.detach()
    return {
        "clip_fraction": Term(policy.clipped.to(ratio.dtype), over),
        "clip_fraction_token": Term(policy.clipped.to(ratio.dtype), "token"),
        "clip_fraction_turn": Term(policy.clipped.to(ratio.dtype), "turn"),
        "clip_fraction_lower": Term(policy.clipped_lower.to(ratio.dtype), over),
        "ratio_mean": Term(ratio, over),
        "approx_kl": Term(-surrogate.log_ratio.detach().clamp(-F.MAX_LOG_RATIO, F.MAX_LOG_RATIO), "token"),
    }


def without_ratio(found: Surrogate, inputs: LossInputs) -> Surrogate:
    """Return the surrogate with minus the advantage times the log-probability as its loss, which nothing clips."""
    score, never = -inputs.advantages * sampled(inputs.logprobs, inputs), torch.zeros_like(inputs.action_mask)
    return found._replace(policy=F.ClippedSurrogate(score, score, never, never))


def sampled(values: Tensor, inputs: LossInputs) -> Tensor:
    """Return the values on tokens that the policy sampled, 0 elsewhere, so that padding may hold anything."""
    return torch.where(inputs.action_mask, values, torch.zeros_like(values))


def required(column: Tensor | None, name: str) -> Tensor:
    """Return a column of the loss inputs that the method asked for.

    Raises:
        ConfigError: The trainer did not fill it.
    """
    if column is None:
        raise ConfigError(f"the loss needs the column {name!r}, got none. Compute what the algorithm's `needs` lists.")
    return column
