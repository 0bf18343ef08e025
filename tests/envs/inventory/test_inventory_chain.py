"""The supply chain against figures of gym-invmgmt, and the optimum against a search through all states."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from turngym.envs.inventory.chain import Chain, ChainState, Stage, serial_chain
from turngym.envs.inventory.demand import draw, poisson
from turngym.envs.inventory.optimum import optimum
from turngym.seeding import stream

SEED_0 = [22, 9, 21, 25, 26, 23, 26, 17, 22, 21, 22, 23, 14, 20, 20, 28, 21, 21, 18, 16, 24, 26, 18, 19, 16, 19, 13, 17]
SEED_0 += [16, 18]
"""Demand of ``GymInvMgmt/Serial-v0`` of gym-invmgmt 0.2.1 after ``reset(seed=0)``."""


@pytest.mark.parametrize(("order", "profit"), [(0, -612_140), (10, 110_650), (20, 774_510), (40, 289_540)])
def test_constant_orders_earn_what_gym_invmgmt_says(order: int, profit: int) -> None:
    state = ChainState(serial_chain(3))
    assert sum(state.advance([order] * 3, demand).profit for demand in SEED_0) == profit


SMALL = (
    Chain((Stage("store", 1, 2, 500, 30, 10),), 2000, 300, 0, 99, False),
    Chain((Stage("store", 2, 1, 500, 40, 10), Stage("depot", 1, 1, 300, 10, 20)), 900, 250, 0, 99, False),
    Chain((Stage("store", 1, 0, 500, 40, 0), Stage("plant", 2, 1, 300, 30, 5)), 900, 250, 15, 99, True),
    Chain((Stage("store", 2, 1, 500, 40, 10), Stage("plant", 3, 0, 300, 30, 5)), 600, 100, 15, 99, True),
)


def best_by_search(chain: Chain, demand: np.ndarray, periods: int, largest: int) -> float:
    """Return the highest expected profit over all orders in all states."""

    @cache
    def value(period: int, stock: tuple[int, ...], coming: tuple[tuple[int, ...], ...], waiting: int) -> float:
        if period == periods:
            return 0.0
        start = ChainState(chain)
        start.stock, start.coming, start.waiting = list(stock), list(map(list, coming)), waiting
        limits = [start.available(stage) for stage in range(len(stock))]
        choices = [range((largest if limit is None else min(limit, largest)) + 1) for limit in limits]
        found = []
        for orders in product(*choices):
            total = 0.0
            for wanted in np.flatnonzero(demand).tolist():
                state = ChainState(chain)
                state.stock, state.coming, state.waiting = list(stock), list(map(list, coming)), waiting
                profit = state.advance(orders, wanted).profit
                then = value(period + 1, tuple(state.stock), tuple(map(tuple, state.coming)), state.waiting)
                total += demand[wanted] * (profit + then)
            found.append(total)
        return max(found)

    state = ChainState(chain)
    return value(0, tuple(state.stock), tuple(map(tuple, state.coming)), 0) / 1000


@pytest.mark.parametrize("chain", SMALL)
def test_optimum_is_that_of_a_search_through_all_states(chain: Chain) -> None:
    demand = np.array([0.4, 0.0, 0.6])
    largest = 6 if len(chain.stages) == 1 else 3
    assert optimum(chain, [demand] * 4).profit == pytest.approx(best_by_search(chain, demand, 4, largest))


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_orders_up_to_the_levels_earn_the_expected_optimum(stages: int) -> None:
    chain, table = serial_chain(stages), poisson(20.0)
    best = optimum(chain, [table] * 30)
    earned, generator = [], stream("inventory", stages)
    for _ in range(200):
        state, profit = ChainState(chain), 0
        for period, demand in enumerate(draw(table, 30, generator)):
            orders = [max(levels[period] - state.position(stage), 0) for stage, levels in enumerate(best.levels)]
            profit += state.advance(orders, demand).profit
        earned.append(profit / 1000)
    error = np.std(earned) / len(earned) ** 0.5
    assert abs(np.mean(earned) - best.profit) < 4 * error < 0.02 * best.profit


def test_one_period_is_a_newsvendor() -> None:
    """Poisson 50, holding .18, waiting .70: order up to 56, at a cost of 1.797235 (stockpyl 1.0.2)."""
    chain = Chain((Stage("store", 0, 0, 0, 180, 0),), 0, 700, 0, 99, False)
    best = optimum(chain, [poisson(50.0)])
    assert best.levels == ((56,),) and best.profit == pytest.approx(-1.797235, abs=1e-6)
