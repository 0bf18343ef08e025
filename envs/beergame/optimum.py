"""Lowest expected cost of the beer game for one agent that sees all stages and knows the distribution of demand.

Such an agent orders no more than a supplier will have, so that only customers' backlog ever costs something, and the
recursions of Clark and Scarf (1960) apply: those of :mod:`turngym.envs.inventory.optimum`, with a first week whose
orders are given, and with shipments that leave after the week's arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from turngym.envs.beergame.chain import BACKLOG, HOLDING, LEAD, NAMES, BeerChain, Start, stages
from turngym.envs.inventory.chain import THOUSAND, Chain
from turngym.envs.inventory.optimum import Recursion, Table


class Central(NamedTuple):
    """Best orders of an agent that sees everything.

    Args:
        levels: [stage][week] echelon inventory position up to which shipments of a week are ordered the week before;
            the second week of the game is the first.
        cost: Expected cost of all weeks.
    """

    levels: tuple[tuple[int, ...], ...]
    cost: float

    def orders(self, chain: BeerChain, week: int) -> list[int]:
        """Return the orders at the end of a week, from 0 on: each is shipped in full.

        Args:
            chain: The chain at the end of the week, without orders or backlog between its stages.
            week: Number of the week.
        """
        found, below = [], -chain.backlog[0]
        for stage in range(len(NAMES)):
            below += chain.stock[stage] + sum(chain.coming[stage])
            wanted = max(self.levels[stage][week] - below, 0)
            has = chain.stock[stage + 1] + chain.coming[stage + 1][0] if stage + 1 < len(NAMES) else wanted
            found.append(min(wanted, has))
        return found


def central(start: Start, demand: Sequence[Table]) -> Central:
    """Return the orders with the lowest expected cost.

    Args:
        start: Units at the start.
        demand: [weeks] probabilities of 0, 1, 2, ... units, independent between weeks; at least three.

    >>> central(Start(12, 4), [np.eye(9)[4]] * 4 + [np.eye(9)[8]] * 32).cost
    132.0
    """
    return _Central(start, demand).best()


class _Central(Recursion):
    """Periods are the weeks from the second on; the first one only shifts the start."""

    def __init__(self, start: Start, demand: Sequence[Table]) -> None:
        first, *others = stages(start)
        # Counting a stage's arrivals a week early makes shipments leave from the stock of the week before.
        early = [replace(stage, lead=LEAD - 1) for stage in others]
        super().__init__(Chain((first, *early), 0, BACKLOG, 0, 0, False), demand[1:])
        self.start, self.first = start, demand[0]

    def best(self) -> Central:
        """Solve one stage after the other, from the retailer upwards."""
        start, stages = self.start, range(len(NAMES))
        held = start.stock + start.arriving
        total = HOLDING * start.stock * (len(NAMES) - 1) + self._mean(HOLDING * self.places + self._owed(), held)
        levels, shortfalls = [], [np.zeros_like(self.places)] * (self.periods + 1)
        for number in stages:
            at_hand = held + number * (start.stock + LEAD * start.arriving)  # less the demand of the first week
            first = -1 if number else 0
            run = {week: self._running_cost(number, week, shortfalls) for week in range(first, self.periods + LEAD)}
            for week in range(min(LEAD, self.periods)):
                table = run[week + first]
                for each in self.demand[: week + 1 + first][::-1]:
                    table = self._expected(table, each)
                total += self._mean(table, at_hand + (week + 1) * start.arriving)
                total -= self._above(number) * (LEAD - 1 - week) * start.arriving
            found, shortfalls, future = self._stage(number, [run[week] for week in range(self.periods + LEAD)])
            levels.append(tuple(found))
            total += self._mean(future, at_hand + LEAD * start.arriving)
        return Central(tuple(levels), total / THOUSAND)

    def _mean(self, table: Table, place: int) -> float:
        """Return the mean of a function at a position less the demand of the first week."""
        return float(self._expected(table, self.first)[place - self.low])

    def _of_customers(self, number: int) -> Table:
        """Return the cost of each echelon stock at the end of a week."""
        cost = (HOLDING - self._above(number)) * self.places
        return cost if number else cost + self._owed()

    def _owed(self) -> Table:
        """Return what a backlog of customers costs, beyond a negative cost of stock."""
        cost: Table = (HOLDING + BACKLOG) * np.maximum(-self.places, 0.0)
        return cost

    def _on_the_way(self, number: int, period: int) -> int:
        """Return what a unit saves at its supplier while it is on its way."""
        return -self._above(number) * min(LEAD, self.periods - period)

    def _running_cost(self, number: int, period: int, shortfalls: list[Table]) -> Table:
        """Return the cost of the week in which the units arrive, at the end of which the position counts them."""
        if not number:
            is_over = period >= self.periods
            return np.zeros_like(self.places) if is_over else self._of_customers(0)
        if period + 1 >= self.periods:
            return np.zeros_like(self.places)
        cost: Table = self._expected(self._of_customers(number), self.demand[period + 1]) + shortfalls[period + 1]
        return cost
