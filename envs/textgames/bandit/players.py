"""Reference players for bandits: pure functions from what has been seen to the next arm, and LinUCB.

Sources: UCB1 as an upper confidence bound on the mean (Auer et al. 2002, with the factor of the bonus free), Thompson
sampling (Thompson 1933), LinUCB with one ridge regression per arm (Li et al. 2010). All of them first pull every arm
once, except Thompson sampling, whose prior stands for that, and LinUCB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

ALPHA = 0.5


def bonus(count: int, turns: int, alpha: float = ALPHA, scale: float = 1.0) -> float:
    """Return what an upper confidence bound adds to the mean of an arm: ``scale * sqrt(alpha * ln(turns) / count)``.

    Args:
        count: How often the arm has been pulled, at least 1.
        turns: How often any arm has been pulled.
        alpha: Weight of exploration.
        scale: Standard deviation of the rewards; 1 suits rewards in [0, 1].

    >>> round(bonus(4, 100), 4)
    0.7587
    """
    return scale * math.sqrt(alpha * math.log(turns) / count)


def greedy(counts: Sequence[int], sums: Sequence[float]) -> int:
    """Return the arm with the highest mean so far, without any bonus; the first of the arms that are equal.

    >>> greedy([2, 2, 0], [1, 2, 0]), greedy([2, 2, 1], [1, 2, 0])
    (2, 1)
    """
    return ucb(counts, sums, alpha=0.0)


def ucb(counts: Sequence[int], sums: Sequence[float], alpha: float = ALPHA, scale: float = 1.0) -> int:
    """Return the arm with the highest upper confidence bound; the first of the arms that are equal.

    Args:
        counts: How often each arm has been pulled.
        sums: The sum of its rewards.
        alpha: Weight of exploration.
        scale: Standard deviation of the rewards.

    >>> ucb([1, 9], [0, 5]), ucb([4, 9], [0, 5])
    (0, 1)
    """
    if 0 in counts:
        return list(counts).index(0)
    factor = alpha * math.log(sum(counts))
    values = [total / count + scale * math.sqrt(factor / count) for count, total in zip(counts, sums, strict=True)]
    return values.index(max(values))


def thompson_bernoulli(counts: Sequence[int], sums: Sequence[float], generator: np.random.Generator) -> int:
    """Return the best arm of means drawn from their posteriors under the prior Beta(1, 1), for rewards 0 and 1.

    Raises:
        ConfigError: The sums cannot be those of rewards 0 and 1.

    >>> thompson_bernoulli([100, 100], [90, 10], np.random.Generator(np.random.Philox(0)))
    0
    """
    if any(total != int(total) or not 0 <= total <= count for count, total in zip(counts, sums, strict=True)):
        raise ConfigError(f"Beta posteriors need rewards of 0 and 1, got sums {list(sums)} of {list(counts)} rewards.")
    wins = np.asarray(sums, float)
    return int(np.argmax(generator.beta(1 + wins, 1 + np.asarray(counts) - wins)))


def thompson_gaussian(
    counts: Sequence[int], sums: Sequence[float], generator: np.random.Generator, noise: float, spread: float
) -> int:
    """Return the best arm of means drawn from their posteriors, for normal rewards and a normal prior around 0.

    Args:
        counts: How often each arm has been pulled.
        sums: The sum of its rewards.
        generator: Source of the draw.
        noise: Standard deviation of an arm's rewards.
        spread: Standard deviation of the means of the arms.
    """
    precision = np.asarray(counts) / noise**2 + 1 / spread**2
    centre = np.asarray(sums, float) / noise**2 / precision
    return int(np.argmax(generator.normal(centre, precision**-0.5)))


class LinUCB:
    """Upper confidence bounds on rewards that are linear in a context; one ridge regression per arm, ``A = I``.

    Args:
        num_arms: How many arms there are.
        num_features: Length of a context.
        alpha: Weight of the confidence width ``sqrt(x A^-1 x)``; 0 is greedy.

    >>> player = LinUCB(2, 1)
    >>> player.update(np.array([1.0]), 1, 1.0)
    >>> player.values(np.array([1.0])).round(3).tolist(), player.choose(np.array([1.0]))
    ([0.5, 0.854], 1)
    """

    def __init__(self, num_arms: int, num_features: int, alpha: float = ALPHA) -> None:
        self.alpha = alpha
        self._inverse = np.tile(np.eye(num_features), (num_arms, 1, 1))
        self._sums = np.zeros((num_arms, num_features))

    def update(self, context: NDArray[np.float64], arm: int, reward: float) -> None:
        """Learn from one reward; the inverse is kept up to date by the Sherman-Morrison formula."""
        inverse = self._inverse[arm]
        pulled = inverse @ context
        inverse -= np.outer(pulled, pulled) / (1 + context @ pulled)
        self._sums[arm] += reward * context

    def parts(self, context: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each arm's estimate and its bonus, two arrays [arm]."""
        weights = np.einsum("kij,kj->ki", self._inverse, self._sums)
        width = np.einsum("i,kij,j->k", context, self._inverse, context)
        return weights @ context, self.alpha * np.sqrt(width)

    def values(self, context: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each arm's upper confidence bound, an array [arm]."""
        estimate, width = self.parts(context)
        return estimate + width

    def choose(self, context: NDArray[np.float64]) -> int:
        """Return the arm with the highest upper confidence bound; the first of the arms that are equal."""
        return int(np.argmax(self.values(context)))
