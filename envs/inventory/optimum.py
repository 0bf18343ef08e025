"""Optimal orders of a serial chain by dynamic programming, after Clark and Scarf (1960).

With linear costs and demand that waits, the cost of a serial chain is a sum of functions of one echelon inventory
position each, so that one-dimensional recursions give the optimum: an order-up-to level for each stage and period. The
limit of the factory's shipments in a period is left out; where it never binds, the orders are optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turngym.arithmetic import float_sum
from turngym.envs.inventory.chain import THOUSAND, Chain

Table = NDArray[np.float64]
_DIGITS = 6
_NOTHING, _EVERYTHING = -(10**9), 10**9


@dataclass(frozen=True)
class Optimum:
    """Best orders for a chain and a demand.

    Args:
        levels: [stage][period] echelon inventory position up to which a stage orders; 1e9 for all that its supplier
            has, -1e9 for nothing.
        profit: Expected profit of all periods, in units of money; with the factory's limit, at least the optimum.
    """

    levels: tuple[tuple[int, ...], ...]
    profit: float


def optimum(chain: Chain, demand: Sequence[Table]) -> Optimum:
    """Return the order-up-to levels with the highest expected profit, from the chain's own start.

    Args:
        chain: The chain.
        demand: [periods] probabilities of 0, 1, 2, ... units, independent between periods.

    >>> from turngym.envs.inventory.chain import serial_chain
    >>> from turngym.envs.inventory.demand import poisson
    >>> best = optimum(serial_chain(1), [poisson(20.0)] * 30)
    >>> best.levels[0][22:27], round(best.profit, 3)
    ((107, 107, 106, 94, -1000000000), 407.108)
    """
    return Recursion(chain, demand).solve()


class Recursion:
    """Tables over positions from ``low`` to ``high``; below, every function is linear."""

    def __init__(self, chain: Chain, demand: Sequence[Table]) -> None:
        self.chain, self.demand, self.periods = chain, demand, len(demand)
        most = max(map(len, demand))
        self.means = [float(each @ np.arange(len(each))) for each in demand]
        total = float_sum(self.means)
        self.low = -2 * most
        self.high = sum(stage.stock for stage in chain.stages) + int(total + 6 * total**0.5) + 2 * most
        self.places = np.arange(self.low, self.high + 1, dtype=np.float64)

    def solve(self) -> Optimum:
        """Solve one stage after the other, from the store upwards."""
        total = self.chain.sale * float_sum(self.means)
        levels, shortfalls, start = [], [np.zeros_like(self.places)] * (self.periods + 1), 0
        for number, stage in enumerate(self.chain.stages):
            start += stage.stock
            run = [self._running_cost(number, period, shortfalls) for period in range(self.periods + stage.lead)]
            total -= self._uncontrolled(number, run, start, shortfalls[0])
            found, shortfalls, future = self._stage(number, run)
            levels.append(tuple(found))
            total -= float(future[start - self.low])
        return Optimum(tuple(levels), total / THOUSAND)

    def _above(self, number: int) -> int:
        """Return the cost of a unit in stock at the supplier of a stage."""
        stages = self.chain.stages
        return stages[number + 1].holding if number + 1 < len(stages) else 0

    def _on_the_way(self, number: int, period: int) -> int:
        """Return what a unit that is ordered in a period costs on its way, less its cost at the supplier."""
        stage = self.chain.stages[number]
        return (stage.transit - self._above(number)) * min(stage.lead, self.periods - period)

    def _running_cost(self, number: int, period: int, shortfalls: list[Table]) -> Table:
        """Return the cost of each echelon stock at the end of a period, shortfalls of the stage below included."""
        if period >= self.periods:
            return np.zeros_like(self.places)
        stages, chain = self.chain.stages, self.chain
        cost = (stages[number].holding - self._above(number)) * self.places
        if number:
            return cost + shortfalls[period + 1]
        is_last = period == self.periods - 1
        missing = stages[0].holding + chain.penalty + chain.sale * is_last
        total: Table = cost + missing * np.maximum(-self.places, 0.0)
        return total

    def _uncontrolled(self, number: int, run: list[Table], start: int, shortfall: Table) -> float:
        """Return the expected cost of the stocks before the first order of a stage arrives."""
        cost = float(shortfall[start - self.low]) if number else 0.0
        for period in range(min(self.chain.stages[number].lead, self.periods)):
            table = run[period]
            for each in self.demand[: period + 1][::-1]:
                table = self._expected(table, each)
            cost += float(table[start - self.low])
        return cost

    def _stage(self, number: int, run: list[Table]) -> tuple[list[int], list[Table], Table]:
        """Return levels and shortfall costs of a stage in each period, and the cost of each position at the start."""
        stage = self.chain.stages[number]
        future = np.zeros_like(self.places)
        levels: list[int] = []
        shortfalls = [np.zeros_like(self.places)]
        for period in reversed(range(self.periods)):
            table = run[period + stage.lead]
            for each in self.demand[period + 1 : period + stage.lead + 1][::-1]:
                table = self._expected(table, each)
            unit = self.chain.order_cost(number) + self._on_the_way(number, period)
            cost = unit * self.places + self._expected(table + future, self.demand[period])
            best = int(np.argmin(np.round(cost, _DIGITS)))
            levels.append({0: _NOTHING, len(cost) - 1: _EVERYTHING}.get(best, best + self.low))
            shortfalls.append(np.where(np.arange(len(cost)) < best, cost - cost[best], 0.0))
            future = np.minimum.accumulate(cost[::-1])[::-1] - unit * self.places
        return levels[::-1], shortfalls[::-1], future

    def _expected(self, table: Table, demand: Table) -> Table:
        """Return the mean of a function at the positions less the demand."""
        ahead = len(demand) - 1
        slope = table[1] - table[0]
        below = table[0] - slope * np.arange(ahead, 0, -1)
        longer = np.concatenate([below, table])
        mean: Table = np.convolve(longer, demand, "valid")
        return mean
