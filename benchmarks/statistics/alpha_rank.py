"""Alpha-rank: how long evolution stays with each player (Omidshafiei et al. 2019).

A population plays one player; a mutant with another player appears and takes over the more often, the more it gains.
The share of time of each player ranks them, cycles included, in which all have the same share.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Floats: TypeAlias = NDArray[np.float64]
POPULATION = 50
_FIRST_ALPHA, _LARGEST_EXPONENT, _STABLE = 0.1, 500.0, 1e-6


def alpha_rank(payoffs: Floats, alpha: float | None = None, population: int = POPULATION) -> Floats:
    """Return the share of time of each player.

    Args:
        payoffs: [player, player] what the row gets against the column, such as points in [0, 1].
        alpha: Strength of selection; None doubles it from 0.1 until the shares no longer change.
        population: Size of the population, at least 2.

    Raises:
        ConfigError: The payoffs do not form a finite square matrix, or a number is out of its range.

    >>> points = np.array([[0.5, 0.9, 0.1, 0.8], [0.1, 0.5, 0.9, 0.8], [0.9, 0.1, 0.5, 0.8], [0.2, 0.2, 0.2, 0.5]])
    >>> alpha_rank(points, alpha=0.1).round(4).tolist()
    [0.3276, 0.3276, 0.3276, 0.0173]
    >>> alpha_rank(points).round(4).tolist()
    [0.3333, 0.3333, 0.3333, 0.0]
    """
    payoffs = np.asarray(payoffs, dtype=np.float64)
    if payoffs.ndim != 2 or payoffs.shape[0] != payoffs.shape[1] or not payoffs.size or not np.isfinite(payoffs).all():
        raise ConfigError(f"alpha-rank needs a finite square matrix of payoffs, got shape {payoffs.shape}.")
    if population < 2 or (alpha is not None and not 0 <= alpha < np.inf):
        raise ConfigError(f"alpha-rank needs alpha of at least 0 and a population of 2, got {alpha} and {population}.")
    gains = payoffs.T - payoffs  # [resident, mutant]
    largest = float(np.abs(gains).max())
    limit = _LARGEST_EXPONENT / (population * largest) if largest else _FIRST_ALPHA
    if alpha is not None:
        return _shares(gains, min(alpha, limit) if largest else alpha, population)
    alpha = min(_FIRST_ALPHA, limit)
    shares = _shares(gains, alpha, population)
    while alpha < limit:
        alpha = min(2 * alpha, limit)
        before, shares = shares, _shares(gains, alpha, population)
        if np.abs(shares - before).max() < _STABLE:
            break
    return shares


def _shares(gains: Floats, alpha: float, population: int) -> Floats:
    """Return the stationary distribution of the chain in which one mutant at a time takes over or dies out."""
    count = len(gains)
    if count == 1:
        return np.ones(1)
    chances = np.full_like(gains, 1 / population)
    differing = gains != 0
    exponent = alpha * gains[differing]
    if alpha:
        chances[differing] = np.expm1(-exponent) / np.expm1(-population * exponent)
    np.fill_diagonal(chances, 0.0)
    return stationary(chances / (count - 1))


def stationary(chances: Floats) -> Floats:
    """Return the stationary distribution of a Markov chain, by elimination without subtractions.

    Grassmann, Taksar and Heyman (1985); rates of any size keep their digits. States are eliminated by the size of what
    leaves them, so that one that nothing leaves comes last.

    Args:
        chances: [state, state] probability to go from the row to the column; the diagonal is not read.

    >>> stationary(np.array([[0.0, 0.2], [0.1, 0.0]])).round(4).tolist()
    [0.3333, 0.6667]
    """
    rates = np.array(chances, dtype=np.float64)
    np.fill_diagonal(rates, 0.0)
    left, order = list(range(len(rates))), []
    while len(left) > 1:
        state = max(left, key=lambda each: (float(rates[each, left].sum()), each))
        left.remove(state)
        leaving = float(rates[state, left].sum())
        order.append((state, list(left), leaving))
        if leaving:
            rates[np.ix_(left, left)] += np.outer(rates[left, state], rates[state, left] / leaving)
            rates[left, left] = 0.0
    shares = np.zeros(len(rates))
    shares[left] = 1.0
    for state, others, leaving in reversed(order):
        shares[state] = float(shares[others] @ rates[others, state]) / leaving if leaving else 1.0
    shares /= shares.sum()
    return shares
