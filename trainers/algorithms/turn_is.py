"""Turn-level importance sampling (ST-PPO/SORL, Li et al. 2025, arXiv 2511.20718, equation 4).

A modifier: the importance ratio becomes the geometric mean of the token ratios of a turn, shared by its tokens; the
advantages are unchanged. The paper calls it Turn-PPO, a name that belongs to another method here. The formula was read
in secondary descriptions of the paper, two of three of which agree on it. The paper averages over the tokens of a
trajectory first: ``normalisation="trajectory"`` of the base method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RATIOS, RatioLevel, one_of
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm

RatioGradient: TypeAlias = Literal["exact", "token"]

LEVELS: dict[str, RatioLevel] = {
    "exact": RATIOS["turn_geometric"],
    "token": RATIOS["turn_geometric_by_token"],
}


@dataclass(frozen=True)
class TurnISConfig:
    """Settings of turn-level importance sampling."""

    gradient: RatioGradient = "exact"
    """How a turn's ratio is differentiated: as the geometric mean that it is, or through each token's own
    log-probability only. Equal where a turn has one advantage and nothing is clipped."""

    def __post_init__(self) -> None:
        one_of("gradient", self.gradient, get_args(RatioGradient))


@ALGORITHMS.register("turn_is")
class TurnIS(Modifier[TurnISConfig]):
    """Turn-level importance sampling on another method."""

    Config: ClassVar[type[TurnISConfig]] = TurnISConfig

    def __init__(self, config: TurnISConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.base = self.base.with_ratio(LEVELS[config.gradient])
