"""The budget rule of V0: tasks in proportion to the useful episodes of a group (arXiv 2602.03584).

The source predicts success rates for the present policy with a frozen embedder and an in-context model, and divides a
budget of episodes. Here the rates are the results of each task, and groups have one size.
"""

from __future__ import annotations

from typing import ClassVar

from turngym.trainers.curricula import CURRICULA
from turngym.trainers.curricula.base.curriculum import CurriculumConfig, Record, WeightedCurriculum


def useful(rate: float, group_size: int) -> float:
    """Return the expected number of failed episodes of a group with at least one solved episode among the others.

    Args:
        rate: Success rate of an episode, in [0, 1].
        group_size: Episodes of a group.

    >>> useful(0.5, 4), round(useful(0.1, 4), 4)
    (1.75, 0.9756)
    """
    return group_size * (1 - rate) * (1 - (1 - rate) ** (group_size - 1))


@CURRICULA.register("v0")
class V0(WeightedCurriculum[CurriculumConfig]):
    """Draws tasks by the expected number of failed episodes that share a group with a solved one.

    Larger groups favour harder tasks: the weight is largest at a rate of .37 in groups of four and .26 in groups of
    eight.

    >>> curriculum = V0(CurriculumConfig())
    >>> [round(curriculum.weight(Record(6, solved, 0), group_size=8), 2) for solved in (0, 1, 3, 6)]
    [4.25, 5.2, 3.97, 1.0]
    """

    Config: ClassVar[type[CurriculumConfig]] = CurriculumConfig

    def weight(self, record: Record, group_size: int) -> float:
        """Return the expected number of useful episodes; groups of one count as pairs."""
        return useful(record.rate, max(group_size, 2))
