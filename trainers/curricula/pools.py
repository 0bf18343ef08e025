"""Pools of tasks by the success rate of their latest group (repository prime-rl, its sampler of difficulty pools)."""

from __future__ import annotations

from typing import ClassVar

from turngym.options import Amount, Share, at_most
from turngym.trainers.curricula import CURRICULA
from turngym.trainers.curricula.base.curriculum import CurriculumConfig, Record, WeightedCurriculum


class PoolsConfig(CurriculumConfig):
    """Settings of ``pools``."""

    hard: Share = 0.25
    """Greatest success rate of a hard task."""
    easy: Share = 0.75
    """Success rate above which a task is easy."""
    hard_weight: Amount = 0.2
    """Weight of a hard task in the draw; 0 closes the pool."""
    normal_weight: Amount = 1.0
    """Weight of a task in between."""
    easy_weight: Amount = 0.2
    """Weight of an easy task; 0 closes the pool."""

    def check(self) -> None:
        """Raise unless the pools are in order."""
        self.require("hard", at_most(self.easy))


@CURRICULA.register("pools")
class Pools(WeightedCurriculum[PoolsConfig]):
    """Draws mostly tasks that are solved sometimes; tasks never played have weight 1.

    >>> pools = Pools(PoolsConfig(easy_weight=0))
    >>> [pools.weight(Record(4, 4 * rate, rate), group_size=4) for rate in (0, 0.25, 0.5, 0.75, 1)]
    [0.2, 0.2, 1.0, 1.0, 0]
    """

    Config: ClassVar[type[PoolsConfig]] = PoolsConfig

    def weight(self, record: Record, group_size: int) -> float:
        """Return the weight of the task's pool."""
        config = self.config
        if record.is_new:
            return 1.0
        if record.last <= config.hard:
            return config.hard_weight
        return config.normal_weight if record.last <= config.easy else config.easy_weight
