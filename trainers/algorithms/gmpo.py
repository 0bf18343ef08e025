"""GMPO: the geometric mean of clipped token ratios (Zhao et al. 2025, arXiv 2507.20673).

    L = -A * exp(mean over the turn of the clipped log-ratios)

Every token is clipped by itself, in the space of log-ratios and therefore wide, and the mean keeps one outlier from
moving the whole. The sequence of the paper is a turn here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioLevel, RatioName, Surrogate
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, Normalisation
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class GMPOConfig(GroupConfig):
    """Settings of GMPO."""

    keeps: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    clip_low: float = 0.4
    """Width of the clip range of log-ratios below 0."""
    clip_high: float = 0.4
    """Width of the clip range of log-ratios above 0."""
    dual_clip: float = 0.0
    """Always 0: log-ratios are clipped before they are averaged."""
    ratio: RatioName = "turn_geometric"
    """Always the geometric mean over a turn: it is the method."""
    normalisation: Normalisation = "turn"
    """Over what the policy loss is averaged: every completion weighs the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dual_clip != 0 or self.ratio != "turn_geometric":
            raise ConfigError(
                "gmpo is the geometric mean of clipped ratios over a turn: leave dual_clip=0 and "
                f"ratio='turn_geometric', got {self.dual_clip} and {self.ratio!r}. gspo has other ratios."
            )


@ALGORITHMS.register("gmpo")
class GMPO(OutcomeMethod[GMPOConfig]):
    """Geometric-mean policy optimisation."""

    Config: ClassVar[type[GMPOConfig]] = GMPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        return group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)

    def with_ratio(self, level: RatioLevel) -> Self:
        """Raise, because another importance ratio is not supported.

        Raises:
            ConfigError: Always: the geometric mean over a turn is the method.
        """
        raise ConfigError("gmpo has its own turn-level ratio, the mean of clipped ones. Change the ratio of grpo.")

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the geometric mean of the turn's clipped ratios."""
        log_ratio = F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        policy = F.gmpo_surrogate(
            log_ratio,
            inputs.advantages,
            inputs.turn_ids,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )
        return Surrogate(policy, self.ratio_level.ratio(log_ratio, inputs.turn_ids), log_ratio)
