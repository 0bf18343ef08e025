"""OPMD: the return less a soft mean of the group, without ratio and clip; with a shift it is AsymRE (2509.24203).

On-policy mirror descent as Trinity-RFT has it (Yao et al. 2025, arXiv 2509.24203). Its baseline is that of the best
policy under a divergence of weight tau from the one that sampled: tau times the log of the mean of exp(R / tau). AsymRE
(arXiv 2506.20520) takes a baseline below the mean: off-policy, good samples then teach more than bad ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioLevel, Surrogate, one_of, within, without_ratio
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import TurnTable

_Baseline: TypeAlias = Literal["mean", "soft"]


@dataclass(frozen=True)
class OPMDConfig(OutcomeConfig):
    """Settings of OPMD."""

    baseline: _Baseline = "mean"
    """The group's mean return, or tau times the log of its mean exponential."""
    tau: float = 1.0
    """Temperature of the soft baseline."""
    shift: float = 0.0
    """Added to the baseline; AsymRE has -0.1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("baseline", self.baseline, get_args(_Baseline))
        within("tau", self.tau, 1e-9)
        within("shift", self.shift, -1e9, 1e9)


def soft_means(returns: Tensor, groups: Tensor, tau: float) -> Tensor:
    """Return for each episode tau * log(mean(exp(R / tau))) over its group.

    Args:
        returns: One number an episode.
        groups: Group of each episode, dense.
        tau: Temperature; small ones give the largest return, large ones the mean.

    >>> soft_means(torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.zeros(4).long(), 1.0)
    tensor([0.3574, 0.3574, 0.3574, 0.3574])
    """
    if not len(returns):
        return returns
    size = torch.bincount(groups)
    largest = returns.new_zeros(len(size)).scatter_reduce(0, groups, returns, "amax", include_self=False)
    total = torch.zeros_like(largest).index_add(0, groups, ((returns - largest[groups]) / tau).exp())
    return (largest + tau * (total / size).log())[groups]


@ALGORITHMS.register("opmd")
class OPMD(OutcomeMethod[OPMDConfig]):
    """Policy gradient with a soft or shifted baseline of the group, without ratio."""

    Config: ClassVar[type[OPMDConfig]] = OPMDConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's baseline."""
        config, groups, returns = self.config, table.episode_group, table.episode_return()
        if config.baseline == "soft":
            above = returns - soft_means(returns, groups, config.tau)
        else:
            above = F.group_advantages(returns, groups, scale_by_std=False)
        above = above - config.shift
        if config.singleton == "raw" and len(groups):
            above = torch.where(torch.bincount(groups)[groups] == 1, returns, above)
        return group_credit(table, above[table.episode], config)

    def with_ratio(self, level: RatioLevel) -> Self:
        """Refuse another importance ratio.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError("opmd has no importance ratio: take dr_grpo, or opmd+rec with weights.")

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-probability."""
        return without_ratio(super().surrogate(inputs), inputs)
