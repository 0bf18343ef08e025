"""RTO: PPO with the token rewards of a model trained by preferences (reinforced token optimisation, arXiv 2404.18922).

A policy trained by DPO, the teacher of the run, rates each token by its log-probability minus that of the reference.
This is added to the rewards of a critic method, token by token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from turngym.errors import ConfigError
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.taught import gaps_to_teacher
from turngym.trainers.algorithms.ppo import PPO, PPOConfig
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float

    from turngym.lazy import Tensor


@dataclass(frozen=True)
class RTOConfig(PPOConfig):
    """Settings of reinforced token optimisation; the discount is per token."""

    reward_kl_coef: float = 0.01
    """Weight of the KL divergence that is subtracted from the reward; above 0 a frozen copy of the policy is kept."""
    preference_coef: float = 0.05
    """Weight of the teacher's log-probability over that of the reference in the reward of a token."""
    preference_clip: float = 0.05
    """Largest size of that part of a token's reward; 0 for no limit."""
    reward_clip: float = 10.0
    """Largest size of a turn's reward."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("preference_coef", self.preference_coef, 0)
        within("preference_clip", self.preference_clip, 0)
        within("reward_clip", self.reward_clip, 1e-9)


@ALGORITHMS.register("rto")
class RTO(PPO):
    """Proximal policy optimisation over tokens, with token rewards of a teacher trained by preferences."""

    Config: ClassVar[type[RTOConfig]] = RTOConfig
    config: RTOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """The log-probabilities of teacher and reference, and what PPO needs."""
        return super().needs | {Need.TEACHER_LOGPROBS, Need.REFERENCE_LOGPROBS}

    def token_preferences(self, table: TurnTable) -> Float[Tensor, "token"]:
        """Return what the teacher adds to the reward of each sampled token; 0 where it is silent.

        Raises:
            ConfigError: The table has no log-probabilities of teacher or reference.
        """
        if table.token_reference_logprob is None:
            raise ConfigError("the turn table has no 'token_reference_logprob': fill it with those of a reference.")
        gaps = gaps_to_teacher(table, table.token_reference_logprob).values.to(table.reward.dtype)
        found, limit = self.config.preference_coef * gaps, self.config.preference_clip
        return found.clamp(-limit, limit) if limit else found

    def token_costs(self, table: TurnTable) -> Float[Tensor, "token"]:
        """Return what is subtracted from the reward of each sampled token."""
        return super().token_costs(table) - self.token_preferences(table)

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its generalised advantage, and the critic its target before whitening."""
        limit = self.config.reward_clip
        credit = super().credit(replace(table, reward=table.reward.clamp(-limit, limit)))
        told = self.token_preferences(table)
        return replace(credit, metrics={**credit.metrics, "rto_preference": float(told.mean()) if len(told) else 0.0})
