"""Choosing what a goal is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from turngym.envs.website.goal import Goal
from turngym.envs.website.store import Schema, World

OneT = TypeVar("OneT")
Record: TypeAlias = Mapping[str, Any]
"""Column -> cell of one row."""
BLOCK = 64
"""Numbers that are drawn together, and then taken from the last to the first."""


class NoGoal(Exception):
    """The sampled world has no goal of the kind: sample again."""


class Dice:
    """Randomness for choosing, several times faster than single numbers of numpy.

    Args:
        generator: The source of randomness.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._numbers: list[float] = []

    def share(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        if not self._numbers:
            self._numbers = self._generator.random(BLOCK).tolist()
        return self._numbers.pop()

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from low to high."""
        return low + int(self.share() * (high - low + 1))

    def one(self, choices: Sequence[OneT]) -> OneT:
        """Return one of several.

        Raises:
            NoGoal: There is none.
        """
        if not choices:
            raise NoGoal
        return choices[int(self.share() * len(choices))]

    def some(self, choices: Sequence[OneT], low: int, high: int) -> list[OneT]:
        """Return from low to high different ones, in their order.

        Raises:
            NoGoal: There are fewer.
        """
        if len(choices) < low:
            raise NoGoal
        count = self.whole(low, min(high, len(choices)))
        order = sorted(range(len(choices)), key=lambda place: self.share())
        return [choices[place] for place in sorted(order[:count])]


class Draw(Dice):
    """Randomness, and the world that a goal is sampled in.

    Args:
        world: The world.
        schema: Its tables.
        generator: The source of randomness.
    """

    def __init__(self, world: World, schema: Schema, generator: np.random.Generator) -> None:
        super().__init__(generator)
        self._world, self._schema = world, schema

    def records(self, table: str, **cells: Any) -> list[Record]:
        """Return the rows of a table that have these cells."""
        names = ("id", *self._schema[table])
        found: list[Record] = [dict(zip(names, row, strict=True)) for row in self._world.tables[table]]
        return [record for record in found if all(record[name] == value for name, value in cells.items())]


Maker: TypeAlias = Callable[[Draw], Goal]
"""Makes a goal of one kind, or raises :class:`NoGoal`."""
