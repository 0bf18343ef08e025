"""The curriculum interface: which tasks of a fixed set are played next, by the results so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from turngym.arithmetic import float_sum
from turngym.options import Options, Positive, Share


class Record(NamedTuple):
    """Results of a task.

    Args:
        episodes: Number of its episodes; earlier ones fade.
        solved: Number of those that were solved.
        last: Success rate of its latest group, in [0, 1]; -1 if it was never played.

    >>> Record().rate, Record(4, 3, 0.75).rate
    (0.5, 0.6666666666666666)
    """

    episodes: float = 0.0
    solved: float = 0.0
    last: float = -1.0

    @property
    def is_new(self) -> bool:
        """True if the task was never played."""
        return self.last < 0

    @property
    def rate(self) -> float:
        """Estimated success rate: the mean of a Beta distribution with one more solved and one more failed episode."""
        return (self.solved + 1) / (self.episodes + 2)

    def after(self, episodes: int, solved: int, decay: float) -> Record:
        """Return the record after another group.

        Args:
            episodes: Its episodes, at least one.
            solved: Solved ones among them.
            decay: Weight of earlier episodes.

        >>> Record(4, 3, 0.75).after(4, 0, decay=0.5)
        Record(episodes=6.0, solved=1.5, last=0.0)
        """
        return Record(decay * self.episodes + episodes, decay * self.solved + solved, solved / episodes)


class CurriculumConfig(Options):
    """Settings of every curriculum."""

    tasks: Positive = 256
    """Number of tasks; each is an instance of the train split."""
    decay: Share = 0.5
    """Weight of a task's earlier episodes when another group of it has been played."""


ConfigT = TypeVar("ConfigT", bound=CurriculumConfig)


class Curriculum(ABC, Generic[ConfigT]):
    """Chooses tasks; a pure function of their records, so that checkpoints keep records only.

    Args:
        config: Its settings.
    """

    Config: ClassVar[type[CurriculumConfig]] = CurriculumConfig

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def choose(
        self, records: Sequence[Record], count: int, group_size: int, generator: np.random.Generator
    ) -> list[int]:
        """Return the tasks of the groups of an iteration.

        Args:
            records: Results of each task before the iteration.
            count: Number of groups.
            group_size: Episodes of each.
            generator: Source of randomness.
        """


class WeightedCurriculum(Curriculum[ConfigT]):
    """Draws tasks in proportion to a weight, each once unless too few have a weight above 0."""

    @abstractmethod
    def weight(self, record: Record, group_size: int) -> float:
        """Return the weight of a task, at least 0."""

    def choose(
        self, records: Sequence[Record], count: int, group_size: int, generator: np.random.Generator
    ) -> list[int]:
        """Draw tasks; all are equally likely where no weight is above 0."""
        return drawn([self.weight(record, group_size) for record in records], count, generator)


def drawn(weights: Sequence[float], count: int, generator: np.random.Generator) -> list[int]:
    """Return the indices of drawn weights, distinct if enough of them are above 0.

    Args:
        weights: Weights of at least 0.
        count: Number of draws.
        generator: Source of randomness.

    >>> drawn([0, 1, 0, 0], 3, np.random.default_rng(0))
    [1, 1, 1]
    >>> sorted(drawn([5, 1, 2], 3, np.random.default_rng(0)))
    [0, 1, 2]
    """
    total = float_sum(weights)
    chances = np.asarray(weights, dtype=float) / total if total else np.full(len(weights), 1 / len(weights))
    repeats = np.count_nonzero(chances) < count
    return [int(index) for index in generator.choice(len(weights), count, replace=bool(repeats), p=chances)]
