"""Exploration statistics of a sequence of pulls; pure functions of arms, rewards and true means.

Sources: suffix failure, greedy and minimal fractions after Krishnamurthy et al. 2024 (arXiv 2403.15371), the regret
curve after Nie et al. 2024 (arXiv 2410.06238), the lower bound by Lai and Robbins 1985.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError

_EXPONENTS = np.linspace(0.05, 4.0, 80)


def expected_regret(means: Sequence[float], arms: Sequence[int]) -> NDArray[np.float64]:
    """Return the expected regret after each pull: the sum of ``max(means) - means[arm]``, an array [turn].

    >>> expected_regret([0.25, 0.75], [0, 1, 0]).tolist()
    [0.5, 0.5, 1.0]
    """
    values = np.asarray(means, float)
    return np.cumsum(values.max() - values[np.asarray(arms, int)])


def optimal_fraction(means: Sequence[float], arms: Sequence[int]) -> float:
    """Return the share of the pulls that went to a best arm.

    >>> optimal_fraction([0.25, 0.75], [0, 1, 1, 1])
    0.75
    """
    _some(arms)
    best = max(means)
    return sum([means[arm] == best for arm in arms]) / len(arms)


def minimal_fraction(num_arms: int, arms: Sequence[int]) -> float:
    """Return ``num_arms`` times the share of the arm that was pulled least: 1 if all were pulled equally often.

    >>> minimal_fraction(2, [0, 1, 1, 1]), minimal_fraction(3, [0, 1])
    (0.5, 0.0)
    """
    _some(arms)
    return num_arms * min([list(arms).count(arm) for arm in range(num_arms)]) / len(arms)


def greedy_fraction(num_arms: int, arms: Sequence[int], rewards: Sequence[float]) -> float:
    """Return the share of the pulls that went to an arm with the highest mean so far.

    Pulls before any reward has been seen are left out; arms that have not been pulled have no mean.

    >>> greedy_fraction(2, [0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0])
    0.3333333333333333
    """
    _some(arms[1:])
    counts, sums = [0] * num_arms, [0.0] * num_arms
    hits = 0
    for turn, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
        if turn:
            highest = max([total / count for count, total in zip(counts, sums, strict=True) if count])
            hits += bool(counts[arm]) and math.isclose(sums[arm] / counts[arm], highest, abs_tol=1e-12)
        counts[arm] += 1
        sums[arm] += reward
    return hits / (len(arms) - 1)


def has_suffix_failure(means: Sequence[float], arms: Sequence[int]) -> bool:
    """Return whether no best arm was pulled in the second half.

    >>> has_suffix_failure([0.25, 0.75], [1, 1, 0, 0]), has_suffix_failure([0.25, 0.75], [0, 0, 0, 1])
    (True, False)
    """
    _some(arms)
    best = max(means)
    return all(means[arm] < best for arm in arms[len(arms) // 2 :])


def bernoulli_divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two rewards 0 and 1 with means ``p`` and ``q``, in nats.

    >>> round(bernoulli_divergence(0.25, 0.75), 4), bernoulli_divergence(0.5, 0.5), bernoulli_divergence(0.5, 1.0)
    (0.5493, 0.0, inf)
    """
    result = 0.0
    for one, other in ((p, q), (1 - p, 1 - q)):
        if one > 0:
            result += one * math.log(one / other) if other > 0 else math.inf
    return result


def lai_robbins_slope(means: Sequence[float]) -> float:
    """Return the least regret per ``ln T`` of any player that learns on every Bernoulli bandit.

    It is the sum of ``(best - mean) / KL(mean, best)`` over the arms that are not best.

    >>> round(lai_robbins_slope([0.75, 0.25, 0.25, 0.25, 0.25]), 4)
    3.641
    """
    best = max(means)
    return float_sum([(best - mean) / bernoulli_divergence(mean, best) for mean in means if mean < best])


class RegretCurve(NamedTuple):
    """A fitted curve ``f(T) = scale * (ln T) ** exponent / gap + slope * T + offset``.

    A player that learns has a slope near 0: its regret grows more slowly than the number of turns.

    Args:
        scale: Weight of the part that grows like a power of the logarithm, at least 0.
        exponent: That power.
        slope: Weight of the part that grows like the number of turns, at least 0.
        offset: Constant added to all.
        error: Root of the mean squared residual.
    """

    scale: float
    exponent: float
    slope: float
    offset: float
    error: float


def fit_regret_curve(regret: ArrayLike, gap: float) -> RegretCurve:
    """Fit a curve to the regret after turns 1, 2, 3, ...; least squares, exact for each exponent of a fine grid.

    Args:
        regret: Expected regret after each turn, shape [turn], at least 4 of them; better a mean over many episodes.
        gap: Difference of the two best means, more than 0.

    Raises:
        ConfigError: There are too few turns, or the gap is not positive.

    >>> turns = np.arange(1, 301)
    >>> curve = fit_regret_curve(0.2 * turns + 3.0, gap=0.5)
    >>> round(curve.slope, 3), round(curve.offset, 3)
    (0.2, 3.0)
    """
    values = np.asarray(regret, float)
    if values.ndim != 1 or len(values) < 4 or not gap > 0:
        raise ConfigError(f"a regret curve needs at least 4 turns and a positive gap, got {values.shape} and {gap}.")
    turns = np.arange(1, len(values) + 1)
    fits = [_fit(values, np.log(turns) ** exponent / gap, turns, float(exponent)) for exponent in _EXPONENTS]
    return min(fits, key=lambda fit: fit.error)


def _fit(
    values: NDArray[np.float64], bend: NDArray[np.float64], turns: NDArray[np.int_], exponent: float
) -> RegretCurve:
    """Return the best curve of one exponent: least squares over each choice of the weights that are not 0."""
    best: RegretCurve | None = None
    columns = (bend, turns.astype(float))
    for size in range(3):
        for chosen in combinations((0, 1), size):
            matrix = np.column_stack([*[columns[index] for index in chosen], np.ones(len(values))])
            weights = np.linalg.lstsq(matrix, values, rcond=None)[0]
            error = float(np.sqrt(np.mean((matrix @ weights - values) ** 2)))
            if (weights[:-1] >= 0).all() and (best is None or error < best.error):
                parts = dict(zip(chosen, weights[:-1].tolist(), strict=True))
                best = RegretCurve(parts.get(0, 0.0), exponent, parts.get(1, 0.0), float(weights[-1]), error)
    assert best is not None, "the choice without weights has none below 0"
    return best


def _some(arms: Sequence[int]) -> None:
    if not arms:
        raise ConfigError("a share of the pulls needs more pulls than none: pass the arms of an episode.")
