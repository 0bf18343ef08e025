"""Rank-GRPO: every item of a list has its own advantage and ratio (arXiv 2510.20150).

An action that is a list, such as recommendations or calls of tools, is rewarded item by item. Items at one rank are
compared over the group. Here a turn is an item: one answer of an episode that names one thing after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioName, within
from turngym.trainers.algorithms.gigpo import step_returns
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Normalisation
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class RankGRPOConfig(OutcomeConfig):
    """Settings of Rank-GRPO."""

    clip_low: float = 0.06
    """Clip range below a ratio of 1."""
    clip_high: float = 0.08
    """Clip range above a ratio of 1."""
    ratio: RatioName = "turn_geometric"
    """Level of the importance ratio: the geometric mean over an item."""
    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    kl_coef: float = 0.001
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    gamma: float = 1.0
    """Discount per turn of later rewards; with 0 an item is credited with its own reward alone."""
    epsilon: float = 1e-4
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0, 1)
        within("epsilon", self.epsilon, 0)


@ALGORITHMS.register("rank_grpo")
class RankGRPO(OutcomeMethod[RankGRPOConfig]):
    """Group-relative policy optimisation of each turn among those of the same number."""

    Config: ClassVar[type[RankGRPOConfig]] = RankGRPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the return of its turn among the group's turns of the same number."""
        config = self.config
        advantages = F.group_advantages(
            step_returns(table, gamma=config.gamma),
            F.joint_keys(table.group, table.turn),
            scale_by_std=True,
            epsilon=config.epsilon,
            singleton=config.singleton,
        )
        return group_credit(table, advantages, config)
