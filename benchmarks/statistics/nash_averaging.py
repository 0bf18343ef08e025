"""Nash averaging: a rating that copies of a player and easy victims do not move (Balduzzi et al. 2018).

Two imaginary opponents each pick a player, and the one whose player is better gets the margin. The equilibrium of that
game weights the players, and a player's skill is its mean margin against them: 0 for all in the equilibrium, below 0
for the others. Of several equilibria the one with the largest entropy counts, which is unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Floats: TypeAlias = NDArray[np.float64]
_SLACK, _LAST_BARRIER, _LOWER, _STEPS, _TOLERANCE, _SHORTEST = 1e-8, 1e-8, 0.2, 50, 0.1, 1e-9
_NONE, _RIDGE = 1e-6, 1e-14


@dataclass(frozen=True)
class NashAverage:
    """The equilibrium and what every player gets against it.

    Args:
        weights: [player] probabilities of the equilibrium.
        skills: [player] mean margin against the equilibrium.
    """

    weights: Floats
    skills: Floats


def nash_average(margins: Floats) -> NashAverage:
    """Return the equilibrium of largest entropy, to about 1e-6.

    Args:
        margins: [player, player] what the row gains over the column, in [-1, 1] or of that order, such as points less
            one half. Antisymmetric.

    Raises:
        ConfigError: The margins are not a finite antisymmetric matrix.

    >>> points = np.array([[0.5, 0.9, 0.1, 0.8], [0.1, 0.5, 0.9, 0.8], [0.9, 0.1, 0.5, 0.8], [0.2, 0.2, 0.2, 0.5]])
    >>> found = nash_average(points - 0.5)
    >>> found.weights.round(4).tolist(), (found.skills.round(4) + 0).tolist()
    ([0.3333, 0.3333, 0.3333, 0.0], [0.0, 0.0, 0.0, -0.3])
    """
    margins = np.array(margins, dtype=np.float64)
    is_square = margins.ndim == 2 and margins.shape[0] == margins.shape[1] > 0
    if not is_square or not np.isfinite(margins).all() or not np.allclose(margins, -margins.T, atol=1e-9):
        raise ConfigError(
            "Nash averaging needs a finite square matrix whose entry [i, j] is less [j, i], got one of shape "
            f"{margins.shape}: pass points less one half."
        )
    weights = _largest_entropy(margins)
    weights = np.where(weights < _NONE, 0.0, weights)
    weights /= weights.sum()
    return NashAverage(weights, margins @ weights)


def _largest_entropy(margins: Floats) -> Floats:
    """Maximise the entropy of ``p`` with ``margins @ p <= 1e-8``, by Newton's method on its dual with a barrier.

    At prices ``q >= 0`` of the conditions, ``p`` is proportional to ``exp(-margins.T @ q)``.
    """
    prices = np.ones(len(margins))
    barrier = 1.0
    while barrier > _LAST_BARRIER:
        barrier *= _LOWER
        for _ in range(_STEPS):
            weights = _weights(margins, prices)
            gradient = _SLACK - margins @ weights - barrier / prices
            if float(np.abs(gradient * prices).max()) < _TOLERANCE * barrier:
                break
            spread = margins * weights
            curvature = spread @ margins.T - np.outer(margins @ weights, margins @ weights)
            # in units of the prices, which differ by many orders of magnitude
            scaled = curvature * np.outer(prices, prices) + barrier * np.eye(len(prices))
            scaled += _RIDGE * float(scaled.trace()) * np.eye(len(prices))
            step = np.asarray(np.linalg.solve(scaled, -gradient * prices), dtype=np.float64)
            prices *= _moved(margins, prices, step, barrier)
    return _weights(margins, prices)


def _weights(margins: Floats, prices: Floats) -> Floats:
    exponents = -margins.T @ prices
    weights: Floats = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    return weights


def _dual(margins: Floats, prices: Floats, barrier: float) -> float:
    exponents = -margins.T @ prices
    highest = float(exponents.max())
    total = highest + float(np.log(np.exp(exponents - highest).sum()))
    return total + _SLACK * float(prices.sum()) - barrier * float(np.log(prices).sum())


def _moved(margins: Floats, prices: Floats, step: Floats, barrier: float) -> Floats:
    """Return factors of the prices: the step, halved until the dual falls."""
    before, length = _dual(margins, prices, barrier), 1.0
    while length > _SHORTEST:
        factors: Floats = 1 + length * step
        if (factors > 0).all() and _dual(margins, prices * factors, barrier) < before:
            return factors
        length /= 2
    return np.ones_like(step)
