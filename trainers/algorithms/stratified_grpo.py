"""Stratified GRPO: an episode is compared with those of its group that have its shape (arXiv 2510.06214).

Episodes of one group that took different numbers of actions are not compared evenly. A stratum is the episodes of a
group that have one shape, and the advantage is a blend of the episode among its stratum and among its group:

    A = alpha * (R - mean_stratum) / (std_stratum + eps) + (1 - alpha) * (R - mean) / (std + eps)

The abstract of the paper was read; formula and constants come from secondary descriptions, and alpha is our choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Int

By: TypeAlias = Literal["turns", "valid_turns"]


@dataclass(frozen=True)
class StratifiedGRPOConfig(GroupConfig):
    """Settings of stratified GRPO."""

    ddof: int = 0
    """1 for the sample standard deviation, 0 for the population's."""
    alpha: float = 0.5
    """Weight of the episode among its stratum; the rest is its weight among the group."""
    by: By = "turns"
    """Common property of a stratum: the number of turns, or of turns with a valid action."""
    scale_by_std: bool = True
    """Whether both parts are divided by their standard deviation or only centred."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("alpha", self.alpha, 0, 1)
        one_of("by", self.by, get_args(By))


def strata(table: TurnTable, by: By) -> Int[Tensor, "episode"]:
    """Return dense keys of episodes, equal for those of one group that have the same shape."""
    counted = torch.ones_like(table.is_valid) if by == "turns" else table.is_valid
    shape = table.episode_sum(counted.to(table.reward.dtype)).long()
    return F.joint_keys(table.episode_group, shape)


@ALGORITHMS.register("stratified_grpo")
class StratifiedGRPO(OutcomeMethod[StratifiedGRPOConfig]):
    """Group-relative policy optimisation with strata of episodes of one shape."""

    Config: ClassVar[type[StratifiedGRPOConfig]] = StratifiedGRPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the blend of its episode among its stratum and among its group."""
        config = self.config
        keys = strata(table, config.by)
        among_stratum = F.group_advantages(
            table.episode_return()[table.episode],
            keys[table.episode],
            table.turn == 0,
            scale_by_std=config.scale_by_std,
            ddof=config.ddof,
            epsilon=config.epsilon,
        )
        among_group = episode_advantages(table, config, scale_by_std=config.scale_by_std)
        credit = group_credit(table, config.alpha * among_stratum + (1 - config.alpha) * among_group, config)
        sizes = torch.bincount(keys)[keys] if len(keys) else keys
        alone = float((sizes == 1).to(torch.float64).mean()) if len(keys) else 0.0
        return Credit(credit.advantages, metrics={**credit.metrics, "episodes_alone_in_stratum": alone})
