"""KL divergence from a reference policy as a part of the reward, as in RLHF (Ziegler et al. 2019, arXiv 1909.08593).

    r_t = r_t - coefficient * kl_t          kl_t between the policy that sampled and the reference, a constant

A method of tokens subtracts it from each token's reward, a method of turns from that of the turn, a method of whole
episodes from the return. With a target the coefficient follows the divergence.

Only ``k1`` gives the gradient of the divergence here. ``k2`` and ``k3`` are constants in the reward, and what is left
of their gradient is about 0 near the reference policy and may lead away from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, one_of, within
from turngym.trainers.algorithms.base.modifier import logged
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float

RewardKLEstimator: TypeAlias = Literal["k1", "k2", "k3"]


@dataclass(frozen=True)
class RewardKLConfig(ClippedConfig):
    """Settings of methods that may subtract the KL divergence from a reference policy from the reward."""

    reward_kl_coef: float = 0.0
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""
    reward_kl_estimator: RewardKLEstimator = "k1"
    """Estimator of that KL divergence; in a reward only the gradient of k1 has no bias."""
    reward_kl_target: float = 0.0
    """Mean KL divergence of a token that the weight is adapted to after every iteration; 0 keeps the weight."""
    reward_kl_horizon: int = 10_000
    """Episodes over which an adapted weight changes by the relative error of the KL divergence, which is cut to 0.2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("reward_kl_coef", "reward_kl_target"):
            within(setting, getattr(self, setting), 0)
        one_of("reward_kl_estimator", self.reward_kl_estimator, get_args(RewardKLEstimator))
        within("reward_kl_horizon", self.reward_kl_horizon, 1)


RewardKLConfigT = TypeVar("RewardKLConfigT", bound=RewardKLConfig)


class RewardKLMethod(ClippedMethod[RewardKLConfigT]):
    """A method whose reward may have the KL divergence from a reference policy subtracted."""

    def __init__(self, config: RewardKLConfigT) -> None:
        super().__init__(config)
        self.reward_kl_coef = config.reward_kl_coef
        """The current weight, which differs from the configured one if there is a target."""

    @property
    def needs(self) -> frozenset[Need]:
        """Both policies' log-probabilities where the KL divergence has a weight, and what the policy loss needs."""
        has_weight = self.config.reward_kl_coef > 0
        return super().needs | ({Need.REFERENCE_LOGPROBS, Need.OLD_LOGPROBS} if has_weight else frozenset())

    def token_divergence(self, table: TurnTable) -> Float[Tensor, "token"]:
        """Return the estimate of the KL divergence at each sampled token; 0 where it has no weight.

        Raises:
            ConfigError: The table has no log-probabilities of the reference policy.
        """
        sampled = table.token_old_logprob.to(table.reward.dtype)
        if self.config.reward_kl_coef == 0:
            return torch.zeros_like(sampled)
        if table.token_reference_logprob is None:
            raise ConfigError(
                "reward_kl_coef is above 0 and the turn table has no 'token_reference_logprob': fill it with the "
                "log-probabilities of a reference policy, or pass reward_kl_coef=0."
            )
        return F.kl_penalty(sampled, table.token_reference_logprob.to(sampled), self.config.reward_kl_estimator)

    def token_costs(self, table: TurnTable) -> Float[Tensor, "token"]:
        """Return what is subtracted from the reward of each sampled token."""
        return self.reward_kl_coef * self.token_divergence(table)

    def turn_costs(self, table: TurnTable) -> Float[Tensor, "turn"]:
        """Return what is subtracted from the reward of each turn: the costs of its tokens."""
        return torch.zeros_like(table.reward).index_add(0, table.token_turn, self.token_costs(table))

    def turn_rewards(self, table: TurnTable) -> Float[Tensor, "turn"]:
        """Return the reward of each turn, less the penalty of an invalid action and the costs of its tokens."""
        return self.penalised_rewards(table) - self.turn_costs(table)

    def kl_metrics(self, table: TurnTable) -> dict[str, float]:
        """Return the mean KL divergence of a token and its weight, where it has one."""
        if self.config.reward_kl_coef == 0:
            return {}
        divergence = self.token_divergence(table)
        mean = float(divergence.mean()) if len(divergence) else 0.0
        return {"reward_kl": mean, "reward_kl_coef": self.reward_kl_coef}

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Adapt the weight to the target."""
        super().observe(metrics)
        divergence, target = logged(metrics, "reward_kl"), self.config.reward_kl_target
        if divergence is not None and target > 0:
            self.reward_kl_coef *= F.adaptive_kl_factor(
                divergence,
                target=target,
                num_samples=int(metrics.get("rollout/episodes", 0)),
                horizon=self.config.reward_kl_horizon,
            )

    def state(self) -> dict[str, Any]:
        """Return the weight, where it is adapted."""
        return {**super().state(), **({"reward_kl_coef": self.reward_kl_coef} if self.config.reward_kl_target else {})}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the weight."""
        super().load_state(state)
        self.reward_kl_coef = float(state.get("reward_kl_coef", self.config.reward_kl_coef))
