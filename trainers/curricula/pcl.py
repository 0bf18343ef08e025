"""Prompt curriculum learning: tasks of medium difficulty (arXiv 2510.01135).

The source predicts success with a value model of the prompt, as its prompts hardly repeat. Here tasks repeat, and their
own results take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from turngym.options import Positive, Share
from turngym.trainers.curricula import CURRICULA
from turngym.trainers.curricula.base.curriculum import Curriculum, CurriculumConfig, Record


class PCLConfig(CurriculumConfig):
    """Settings of ``pcl``."""

    candidates: Positive = 4
    """Candidates per group, drawn uniformly from all tasks."""
    target: Share = 0.5
    """Success rate that is sought."""


@CURRICULA.register("pcl")
class PCL(Curriculum[PCLConfig]):
    """Takes those candidates whose estimated success rate is nearest to ``target``.

    Tasks never played count as one half, so each is tried early.

    >>> curriculum = PCL(PCLConfig(tasks=4))
    >>> records = [Record(6, 0, 0), Record(6, 3, 0.5), Record(6, 6, 1), Record(6, 4, 0.7)]
    >>> curriculum.choose(records, 2, 6, np.random.default_rng(0))
    [1, 3]
    """

    Config: ClassVar[type[PCLConfig]] = PCLConfig

    def choose(
        self, records: Sequence[Record], count: int, group_size: int, generator: np.random.Generator
    ) -> list[int]:
        """Return the candidates nearest to the target, equal ones in random order."""
        number = min(self.config.candidates * count, len(records))
        candidates = generator.choice(len(records), number, replace=False)
        nearest = sorted(candidates, key=lambda task: abs(records[task].rate - self.config.target))
        return [int(task) for task in nearest[:count]]
