"""Var-TB: episodes are sampled in proportion to their reward instead of the best one (GFlowVLM, arXiv 2503.06514).

Trajectory balance in its variance form: over the episodes of a task, the log-likelihood of an episode and the log of
its reward shall differ by the same number, whose exponential is the sum of all rewards. The gradient of that variance,
over the episodes as they were sampled, is a policy gradient with the group's mean as baseline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable

_Flow: TypeAlias = Literal["exponential", "return"]


@dataclass(frozen=True)
class FlowConfig(ClippedConfig):
    """Settings of methods that sample in proportion to a reward."""

    normalisation: Normalisation = "trajectory_sum"
    """Over what the policy loss is averaged: token terms are summed inside an episode, then averaged over episodes."""
    flow: _Flow = "exponential"
    """Reward that likelihoods are proportional to: the exponential of the return over the temperature, or the return
    itself."""
    temperature: float = 1.0
    """Divisor of the return under the exponential; small ones are near to taking the best."""
    floor: float = 0.001
    """Smallest reward where the return itself is taken."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("flow", self.flow, get_args(_Flow))
        within("temperature", self.temperature, 1e-9)
        within("floor", self.floor, 1e-30)

    def log_rewards(self, returns: Tensor) -> Tensor:
        """Return [episodes] the logarithm of the reward that likelihoods are proportional to.

        >>> from turngym.lazy import torch
        >>> FlowConfig(flow="return").log_rewards(torch.tensor([1.0, -1.0]))
        tensor([ 0.0000, -6.9078])
        """
        return returns.clamp_min(self.floor).log() if self.flow == "return" else returns / self.temperature


@dataclass(frozen=True)
class VarTBConfig(FlowConfig, OutcomeConfig):
    """Settings of variance trajectory balance."""


@ALGORITHMS.register("var_tb")
class VarTB(OutcomeMethod[VarTBConfig]):
    """Policy gradient towards sampling in proportion to the reward."""

    Config: ClassVar[type[VarTBConfig]] = VarTBConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the log-probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's log-reward less its log-probability, less the group's mean of that."""
        config, returns, groups = self.config, table.episode_return(), table.episode_group
        flows = config.log_rewards(returns)
        residuals = flows - table.token_sum(table.token_old_logprob).to(flows)
        centred = F.group_advantages(residuals, groups, scale_by_std=False, singleton=config.singleton)
        credit = group_credit(table, centred[table.episode], config)
        metrics = {"balance_error": float((centred**2).mean()) if len(centred) else 0.0}
        return replace(credit, metrics={**credit.metrics, **metrics})
