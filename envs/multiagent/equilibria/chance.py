"""Chance as a player: every outcome of random draws, each with its probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableSequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

T = TypeVar("T")
MOST_OUTCOMES = 20_000
"""Outcomes of one event that are enumerated."""


class EveryDraw:
    """Stands in for a random generator and takes every outcome of its draws in turn.

    Supports ``integers``, ``permutation``, ``shuffle`` and ``choice`` without weights: draws from few equally likely
    outcomes.
    """

    def __init__(self) -> None:
        self._picks: list[tuple[int, int]] = []
        self._used = 0

    def outcomes(self, draw: Callable[[], T]) -> Iterator[tuple[Fraction, T]]:
        """Yield probability and result of each outcome of a function that draws from this generator.

        Raises:
            ConfigError: There are more than :data:`MOST_OUTCOMES`.

        >>> dice = EveryDraw()
        >>> [(str(chance), total) for chance, total in dice.outcomes(lambda: dice.integers(2) + dice.integers(2))]
        [('1/4', 0), ('1/4', 1), ('1/4', 1), ('1/4', 2)]
        """
        self._picks = []
        while True:
            self._used = 0
            result = draw()
            del self._picks[self._used :]
            chance = Fraction(1)
            for _, size in self._picks:
                chance /= size
            if chance * MOST_OUTCOMES < 1:
                raise ConfigError(
                    f"chance has more than {MOST_OUTCOMES:,} outcomes: the game is too large to enumerate."
                )
            yield chance, result
            while self._picks and self._picks[-1][0] + 1 == self._picks[-1][1]:
                self._picks.pop()
            if not self._picks:
                return
            pick, size = self._picks[-1]
            self._picks[-1] = pick + 1, size

    def _pick(self, size: int) -> int:
        if self._used == len(self._picks):
            self._picks.append((0, size))
        self._used += 1
        return self._picks[self._used - 1][0]

    def integers(self, low: int, high: int | None = None, size: int | tuple[int, ...] | None = None) -> Any:
        """Return a number from ``low`` to below ``high`` (from 0 to below ``low`` without it), or an array of them."""
        start, stop = (0, int(low)) if high is None else (int(low), int(high))
        if size is None:
            return start + self._pick(stop - start)
        return np.array([start + self._pick(stop - start) for _ in range(math.prod(np.atleast_1d(size)))]).reshape(size)

    def permutation(self, items: Any) -> NDArray[Any]:
        """Return the items, or the numbers below ``items``, in any order, as an array."""
        values = np.arange(items) if isinstance(items, int) else np.asarray(items)
        return values[self._order(len(values))]

    def _order(self, count: int) -> list[int]:
        left = list(range(count))
        return [left.pop(self._pick(len(left))) for _ in range(count)]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put the items in any order."""
        items[:] = [items[place] for place in self._order(len(items))]

    def choice(self, items: Any, size: int | None = None, replace: bool = True) -> Any:
        """Return any of the items, or an array of ``size``."""
        left = list(range(items)) if isinstance(items, int) else list(items)
        if size is None:
            return left[self._pick(len(left))]
        if replace:
            return np.asarray([left[self._pick(len(left))] for _ in range(size)])
        return np.asarray([left.pop(self._pick(len(left))) for _ in range(size)])

    def __getattr__(self, name: str) -> Any:
        raise ConfigError(
            f"the outcomes of generator.{name}() cannot be enumerated: use integers, permutation, shuffle or choice."
        )
