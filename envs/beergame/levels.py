"""Base-stock levels of stages that know their own orders alone, by their exact long-run cost.

A stage that orders up to a level passes on what is ordered from it. Its stock less its backlog at the end of a week is
its level, less the orders of the last weeks, less what its supplier still owed when it shipped. These numbers are
independent, so that convolutions give their distributions. Where only customers' backlog costs something, such levels
are optimal for a team with late information (Chen 1999, Decentralized supply chains subject to information delays);
since a unit in stock costs the same everywhere, nearly all of it is then at the retailer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from turngym.envs.beergame.chain import BACKLOG, HOLDING, LEAD, NAMES
from turngym.envs.inventory.demand import poisson

_MOVES = tuple(product((-1, 0, 1), repeat=len(NAMES)))
_COVER = LEAD + 1
"""Weeks of orders between an order and its arrival."""


def weekly_cost(levels: Sequence[int], table: NDArray[np.float64], owing: Sequence[int]) -> float:
    """Return the expected cost of a week in the long run, in thousandths.

    Args:
        levels: Stock and units on order, less backlog, up to which each stage orders; at least 0.
        table: Probabilities of 0, 1, 2, ... units of demand.
        owing: Cost of a unit in the backlog of each stage.

    >>> weekly_cost([24] * 4, np.array([0.0] * 8 + [1.0]), [1000] * 4), weekly_cost([25] * 4, np.eye(9)[8], [1000] * 4)
    (0.0, 2000.0)
    """
    ordered = np.ones(1)
    for _ in range(_COVER):
        ordered = np.convolve(ordered, table)
    late, total = np.ones(1), 0.0
    for level, cost in zip(reversed(levels), reversed(owing), strict=True):
        taken = np.convolve(ordered, late)
        left = level - np.arange(len(taken))
        total += float(taken @ (HOLDING * np.maximum(left, 0) + cost * np.maximum(-left, 0)))
        owed = taken[level:].copy()
        if len(owed):
            owed[0] += taken[:level].sum()
        late = owed if len(owed) else np.ones(1)
    return total


@lru_cache(maxsize=32)
def best_levels(mean: float, owing: tuple[int, ...] = (BACKLOG,) * len(NAMES)) -> tuple[int, ...]:
    """Return the levels with the lowest long-run cost for Poisson demand, by steepest descent in all levels at once.

    >>> best_levels(8.0), best_levels(8.0, (1000, 0, 0, 0))
    ((27, 28, 28, 27), (68, 24, 8, 0))
    """
    table, found = poisson(mean), (round(_COVER * mean),) * len(NAMES)

    def cost(levels: Sequence[int]) -> float:
        return weekly_cost(levels, table, owing)

    for step in (4, 1):
        lowest = cost(found)
        while True:
            near = [[level + step * move for level, move in zip(found, moves, strict=True)] for moves in _MOVES]
            costs = [cost(each) if min(each) >= 0 else lowest for each in near]
            best = min(costs)
            if best >= lowest:
                break
            found, lowest = tuple(near[costs.index(best)]), best
    return found
