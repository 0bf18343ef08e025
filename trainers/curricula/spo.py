"""The sampler of single-stream policy optimisation: tasks by the deviation of their outcome (arXiv 2509.13232)."""

from __future__ import annotations

import math
from typing import ClassVar

from turngym.options import Amount
from turngym.trainers.curricula import CURRICULA
from turngym.trainers.curricula.base.curriculum import CurriculumConfig, Record, WeightedCurriculum


class SPOConfig(CurriculumConfig):
    """Settings of ``spo``."""

    floor: Amount = 0.05
    """Weight that every task has at least."""


@CURRICULA.register("spo")
class SPO(WeightedCurriculum[SPOConfig]):
    """Draws tasks by the standard deviation of an episode's outcome, plus a floor.

    >>> SPO(SPOConfig()).weight(Record(), group_size=1)
    0.55
    """

    Config: ClassVar[type[SPOConfig]] = SPOConfig

    def weight(self, record: Record, group_size: int) -> float:
        """Return ``sqrt(v (1 - v))`` of the estimated success rate, plus the floor."""
        return math.sqrt(record.rate * (1 - record.rate)) + self.config.floor
