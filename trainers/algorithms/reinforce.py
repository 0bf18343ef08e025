"""REINFORCE with return batch normalisation (GEM, Liu et al. 2025, arXiv 2510.01051).

The discounted returns of all turns of all episodes of a batch are shifted and scaled together: no groups, no critic,
and episodes of different tasks and lengths may be mixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import (
    ClippedConfig,
    ClippedMethod,
    RatioLevel,
    Surrogate,
    one_of,
    within,
    without_ratio,
)
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import TurnTable

Objective: TypeAlias = Literal["clipped", "plain"]


@dataclass(frozen=True)
class ReinforceConfig(ClippedConfig):
    """Settings of REINFORCE with return batch normalisation."""

    gamma: float = 0.9
    """Discount per turn; below 1 shorter solutions are better, 1.0 suits tools and questions."""
    ddof: int = 0
    """0 divides by the standard deviation of the population, 1 by that of the sample."""
    epsilon: float = 1e-9
    """Added to the standard deviation."""
    objective: Objective = "clipped"
    """PPO's clipped surrogate, which allows several updates per batch, or plain advantage times log-probability."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0, 1)
        within("ddof", self.ddof, 0, 1)
        within("epsilon", self.epsilon, 0)
        one_of("objective", self.objective, get_args(Objective))


@ALGORITHMS.register("reinforce")
class Reinforce(ClippedMethod[ReinforceConfig]):
    """REINFORCE with return batch normalisation."""

    Config: ClassVar[type[ReinforceConfig]] = ReinforceConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's discounted return, normalised over the turns of the batch that have a token."""
        rewards = table.pad(self.penalised_rewards(table))
        returns = table.unpad(F.discounted_returns(rewards, table.turn_mask(), gamma=self.config.gamma))
        counted = table.num_tokens > 0
        normalised = torch.zeros_like(returns)
        normalised[counted] = F.standardise(returns[counted], ddof=self.config.ddof, epsilon=self.config.epsilon)
        return Credit(table.to_tokens(normalised))

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with another kind of importance ratio.

        Raises:
            ConfigError: The objective is plain.
        """
        if self.config.objective == "plain":
            raise ConfigError("reinforce with objective='plain' has no importance ratio. Pass objective='clipped'.")
        return super().with_ratio(level)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the clipped surrogate, or minus the advantage times the log-probability."""
        clipped = super().surrogate(inputs)
        return clipped if self.config.objective == "clipped" else without_ratio(clipped, inputs)
