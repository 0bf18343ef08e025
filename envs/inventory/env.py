"""Inventory: order for the stocks of a supply chain, with random demand and late deliveries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, Reward, TextEnv
from turngym.envs.inventory.chain import THOUSAND, ChainState, serial_chain
from turngym.envs.inventory.demand import draw, poisson
from turngym.envs.inventory.optimum import Optimum, optimum
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

LARGEST_ORDER = 100
"""Units that a stage can order in a period."""
_EDGES = " \t\r\n[]()."
_MOST_DIGITS, _LONGEST_ANSWER = 4, 200
_HIGHEST_SCORE, _LEAST_DEMAND = 100.0, 200
_MOST_EARNED = 10**12


@lru_cache(maxsize=32)
def best_orders(stages: int, mean: float, periods: int) -> Optimum:
    """Return the optimum of a chain with Poisson demand.

    >>> round(best_orders(3, 20.0, 30).profit, 3)
    1013.113
    """
    return optimum(serial_chain(stages), [poisson(mean)] * periods)


@lru_cache(maxsize=32)
def profit_without_orders(stages: int, mean: float, periods: int) -> float:
    """Return the expected profit if nothing is ever ordered.

    >>> round(profit_without_orders(3, 20.0, 30), 1)
    -576.5
    """
    chain, table = serial_chain(stages), poisson(mean)
    first, *others = chain.stages
    profit = -sum(each.holding * each.stock for each in others) * periods / THOUSAND
    total = np.ones(1)
    for period in range(periods):
        total = np.convolve(total, table)
        left = first.stock - np.arange(len(total))
        stock, waiting = float(total @ np.maximum(left, 0)), float(total @ np.maximum(-left, 0))
        profit -= (first.holding * stock + chain.penalty * waiting) / THOUSAND
        if period == periods - 1:
            profit += chain.sale * (first.stock - stock) / THOUSAND
    return profit


class Inventory(TextEnv[str]):
    """Order for the stocks of a supply chain, so that it earns as much as it can.

    Dynamics, prices and costs are those of ``GymInvMgmt/Serial-v0`` of gym-invmgmt 0.2.1 without its options: a store
    sells to customers with Poisson demand, a warehouse supplies it, a factory supplies the warehouse. With fewer
    ``stages`` the last one buys from a source without limits. In each period the suppliers ship what was ordered, at
    most what they have; deliveries arrive; customers buy, and wait if there is too little. One agent orders for all
    stages.

    A reward is the profit of a period times ``reward_scale``. The score is 0 for the expected profit without any order,
    and 1 for the expected profit of optimal orders, which luck can exceed; an episode is a success from
    ``success_score`` on. With one stage, an order of the mean in all but the last four periods scores about .97, so
    compare scores there; with three it scores about .87. The expert orders up to the levels of Clark and Scarf's
    dynamic programme, which are optimal for expected profit. It leaves out the factory's limit of 100 units per period
    and the limit of orders, which these levels do not reach.

    >>> env = Inventory(stages=3)
    >>> observation, info = env.reset(seed=0)
    >>> env.expert_action()
    '14 17 0'
    >>> env.step("[14, 17, 0]")[1] > 0
    True
    """

    class Options(TextEnv.Options):
        stages: Annotated[int, between(1, 3)] = 1
        """Stages: the store, with a warehouse, with a factory."""
        mean: Annotated[float, between(2, 50)] = 20.0
        """Mean demand in a period."""
        periods: Annotated[int, between(10, 100)] = 30
        """Periods of an episode; in all of them customers want at least 200 units in the mean."""
        reward_scale: Reward = 0.01
        """Factor from the profit of a period to the reward."""
        success_score: Annotated[float, between(0, 1)] = 0.9
        """Least score of a success."""
        max_turns: MaxTurns = 40
        """Turns after which an unfinished episode is truncated, at least ``periods``; an invalid answer is a turn."""

        def check(self) -> None:
            if self.max_turns < self.periods:
                raise OptionError("max_turns", f"must be at least {self.periods}, the periods, got {self.max_turns}.")
            if self.mean * self.periods < _LEAST_DEMAND:
                raise OptionError(
                    "periods",
                    f"must be at least {math.ceil(_LEAST_DEMAND / self.mean)} with mean={self.mean:g}, so that the "
                    f"stock at the start does not last; got {self.periods}.",
                )

    options: Options
    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("first legal", "alphabetically first", "last winner's first action", "winners' most frequent action"),
        "random orders are more than twice the demand, so that ordering nothing, or always the same, loses less.",
    )

    def setup(self) -> None:
        options = self.options
        self._chain = serial_chain(options.stages)
        self._table = poisson(options.mean)
        self._legal = tuple(map(str, range(LARGEST_ORDER + 1))) if options.stages == 1 else ()
        self.score_range = 0.0, _HIGHEST_SCORE
        self.instructions = self._rules()

    def _rules(self) -> str:
        chain, options = self._chain, self.options
        names = [stage.name for stage in chain.stages]
        lines = []
        for stage, supplier in zip(chain.stages, [*names[1:], ""], strict=True):
            wait = f"arrives {stage.lead} periods after its order" if stage.lead else "arrives at once"
            source = f"from the {supplier}" if supplier else f"for {stage.price / THOUSAND:g} each, as much as it wants"
            way = f", on the way {stage.transit / THOUSAND:g}" if stage.lead else ""
            lines.append(
                f"- {stage.name}: orders {source}; this {wait}. A unit in stock costs {stage.holding / THOUSAND:g} per "
                f"period{way}."
            )
        if chain.has_factory:
            lines[-1] += f" It ships at most {chain.capacity} units per period, for {chain.output / THOUSAND:g} each."
        answer = "a number" if len(names) == 1 else f"{len(names)} numbers, for {', '.join(names)}"
        example = "[20]" if len(names) == 1 else f"[{', '.join(['20'] * len(names))}]"
        what = f"a {names[0]}" if len(names) == 1 else "a chain of stocks"
        unmet = chain.penalty / THOUSAND
        return (
            f"You order for {what} for {options.periods} periods, to earn as much as possible:\n"
            + "\n".join(lines)
            + "\nIn each period, first suppliers ship what is ordered, at most what they have; then deliveries arrive; "
            f"then customers want a random number of units from the {names[0]}, Poisson with mean {options.mean:g}, "
            f"and pay {chain.sale / THOUSAND:g} each. Those who get none wait, for {unmet:g} per unit and period. "
            "Units that are left after the last period are worth nothing.\n"
            f"Answer with {answer}, from 0 to {LARGEST_ORDER}, such as {example}."
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        options = self.options
        self._demand = self.draw(
            lambda generator: draw(self._table, options.periods, generator),
            lambda demand: f"{options.stages} stages, demand {' '.join(map(str, demand))}",
        )
        self._stocks = ChainState(self._chain)
        self._period, self._earned = 0, 0
        return self._view()

    def _view(self) -> str:
        """Return the period, the stocks and what is on the way."""
        stocks, lines = self._stocks, []
        for number, stage in enumerate(self._chain.stages):
            arriving = ", ".join(map(str, stocks.coming[number]))
            waiting = f", {stocks.waiting} units of demand waiting" if not number else ""
            lines.append(
                f"{stage.name}: {stocks.stock[number]} in stock{waiting}"
                + (f", arriving in this and the next periods: {arriving}" if arriving else "")
            )
        head = f"Period {min(self._period + 1, self.options.periods)} of {self.options.periods}"
        return "\n".join([f"{head}, {self._earned / THOUSAND:g} earned.", *lines])

    def apply_action(self, action: str) -> Outcome[str]:
        orders = self._read(action)
        if orders is None:
            count = len(self._chain.stages)
            what = "a whole number" if count == 1 else f"{count} whole numbers"
            return Outcome(f"Answer with {what} from 0 to {LARGEST_ORDER}.\n{self._view()}", action_is_valid=False)
        demand = self._demand[self._period]
        result = self._stocks.advance(orders, demand)
        self._period += 1
        self._earned += result.profit
        is_over = self._period == self.options.periods
        shipped = ", ".join(map(str, result.filled))
        news = f"Shipped {shipped}. Customers wanted {demand}, {result.sold} sold: profit {result.profit / THOUSAND:g}."
        reward = self.options.reward_scale * result.profit / THOUSAND
        text = f"{news}\n{'The end. ' if is_over else ''}{self._view()}"
        return Outcome(text, reward, is_over, is_over and self._share() >= self.options.success_score)

    def _read(self, action: str) -> list[int] | None:
        """Return the orders that an answer names, None if it names none."""
        if len(action) > _LONGEST_ANSWER:
            return None
        words = action.strip(_EDGES).replace(",", " ").split()
        if len(words) != len(self._chain.stages):
            return None
        if not all(word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS for word in words):
            return None
        orders = list(map(int, words))
        return orders if max(orders) <= LARGEST_ORDER else None

    def _share(self) -> float:
        """Return the score that the profit so far would have at the end."""
        options = self.options
        key = options.stages, options.mean, options.periods
        lowest = profit_without_orders(*key)
        return (self._earned / THOUSAND - lowest) / (best_orders(*key).profit - lowest)

    def anchor(self) -> str:
        return self._view()

    def legal_actions(self) -> tuple[str, ...]:
        return self._legal

    def progress(self) -> float:
        return self._period / self.options.periods

    def score(self) -> float:
        """Return 0 before the end; else the share of the optimum, 0 for less than the profit without orders."""
        return min(max(self._share(), 0.0), _HIGHEST_SCORE) if self._period == self.options.periods else 0.0

    def render_text(self) -> str:
        return self._view()

    def expert_action(self) -> str:
        """Return orders up to the optimal levels.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        options, stocks = self.options, self._stocks
        levels = best_orders(options.stages, options.mean, options.periods).levels
        orders = []
        for stage, of_stage in enumerate(levels):
            limit = stocks.available(stage)
            most = LARGEST_ORDER if limit is None else min(limit, LARGEST_ORDER)
            orders.append(min(max(of_stage[self._period] - stocks.position(stage), 0), most))
        return " ".join(map(str, orders))

    def resample_hidden(self) -> bool:
        """Draw the demand of the periods to come again."""
        left = self.options.periods - self._period
        if not left:
            return False
        self._demand[self._period :] = draw(self._table, left, self.np_random)
        return True

    def save_state(self) -> JSONValue:
        stocks = self._stocks.state()
        return {"demand": list(self._demand), "period": self._period, "earned": self._earned, "stocks": stocks}

    def load_state(self, state: JSONValue) -> None:
        demand, period, earned = list(state["demand"]), state["period"], state["earned"]
        is_demand = all(type(each) is int and 0 <= each < len(self._table) for each in demand)
        if len(demand) != self.options.periods or not is_demand:
            raise ValueError(f"the demand {demand!s:.100}")
        if (
            type(period) is not int
            or not 0 <= period <= len(demand)
            or type(earned) is not int
            or abs(earned) > _MOST_EARNED
        ):
            raise ValueError(f"period {period!r}, earned {earned!r}")
        stocks = ChainState(self._chain)
        stocks.load(state["stocks"])
        self._demand, self._period, self._earned, self._stocks = demand, period, earned, stocks
