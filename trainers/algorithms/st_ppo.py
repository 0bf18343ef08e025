"""ST-PPO: turn-level importance sampling and clipping-bias correction together (arXiv 2511.20718, equation 8).

A modifier, equal to ``turn_is`` and then ``s_ppo`` on the same base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of
from turngym.trainers.algorithms.s_ppo import ClippingCorrection, SPPOConfig
from turngym.trainers.algorithms.turn_is import RatioGradient, TurnIS, TurnISConfig
from turngym.trainers.core.algorithm import Algorithm


@dataclass(frozen=True)
class STPPOConfig(SPPOConfig):
    """Settings of ST-PPO."""

    gradient: RatioGradient = "exact"
    """How a turn's ratio is differentiated: as the geometric mean that it is, or through each token's own
    log-probability only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("gradient", self.gradient, get_args(RatioGradient))


@ALGORITHMS.register("st_ppo")
class STPPO(ClippingCorrection[STPPOConfig]):
    """Turn-level importance sampling and clipping-bias correction on another method."""

    Config: ClassVar[type[STPPOConfig]] = STPPOConfig

    def __init__(self, config: STPPOConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, TurnIS(TurnISConfig(config.gradient), base))
