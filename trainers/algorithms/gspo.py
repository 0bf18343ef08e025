"""GSPO: GRPO whose importance ratio is that of a whole completion (Zheng et al. 2025, arXiv 2507.18071).

The ratio is the geometric mean of the token ratios, so its clip range is narrow. The sequence of the paper is a turn
here: in an episode of one turn it is the paper's. ``ratio="turn_geometric_by_token"`` is GSPO-token, whose gradient
goes through each token's own log-probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioName
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Normalisation
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class GSPOConfig(GroupConfig):
    """Settings of GSPO."""

    keeps: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    clip_low: float = 3e-4
    """Width of the clip range below a ratio of 1; narrow, for a mean over tokens moves little."""
    clip_high: float = 4e-4
    """Clip range above a ratio of 1."""
    ratio: RatioName = "turn_geometric"
    """Level of the importance ratio: the geometric mean over a turn, or that mean by token for GSPO-token."""
    normalisation: Normalisation = "turn"
    """Over what the policy loss is averaged: every completion weighs the same."""


@ALGORITHMS.register("gspo")
class GSPO(OutcomeMethod[GSPOConfig]):
    """Group sequence policy optimisation."""

    Config: ClassVar[type[GSPOConfig]] = GSPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        return group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)
