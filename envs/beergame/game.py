"""The beer game as a game for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import pvariance
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from turngym.envs.beergame import text
from turngym.envs.beergame.chain import BACKLOG, MOST_PAID, NAMES, BeerChain, Start, Week
from turngym.envs.beergame.optimum import Central, central
from turngym.envs.inventory.chain import THOUSAND, require_units
from turngym.envs.inventory.demand import draw, poisson
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.errors import ConfigError
from turngym.options import Options as BaseOptions
from turngym.options import between
from turngym.types import JSONValue

LARGEST_ORDER = 50
"""Units that a stage can order in a week."""
LARGEST_DEMAND = 1000
"""Units that customers can order in a week."""
COST_SCALE = 100
"""Cost for which a reward is -1."""
STEP, STEP_AT = (4, 8), 4
"""Demand before and after its rise, and the weeks before."""
_HIGHEST_SCORE = 10.0
_PLAYERS = "turngym.envs.beergame.players"
_MEANINGS = {
    form: str(units)
    for units in range(LARGEST_ORDER + 1)
    for form in (f"{units}", f"order {units}", f"i order {units}", f"{units} units", f"order {units} units")
}


@lru_cache(maxsize=32)
def best_orders(demand: Literal["poisson", "step"], mean: float, weeks: int) -> Central:
    """Return the best orders of an agent that sees everything; of demand that rises it knows when.

    >>> round(best_orders("poisson", 8.0, 36).cost, 1), best_orders("step", 8.0, 36).cost
    (178.2, 132.0)
    """
    if demand == "step":
        tables = [np.eye(1, units + 1, units)[0] for units in step_demand(weeks)]
    else:
        tables = [poisson(mean)] * weeks
    return central(start_of(demand, mean), tables)


def step_demand(weeks: int) -> list[int]:
    """Return demand that rises.

    >>> step_demand(6)
    [4, 4, 4, 4, 8, 8]
    """
    return [STEP[week >= STEP_AT] for week in range(weeks)]


def start_of(demand: Literal["poisson", "step"], mean: float) -> Start:
    """Return the units at the start: those of Sterman, or half a week of demand in stock and one in each shipment."""
    return Start(12, STEP[0]) if demand == "step" else Start(round(mean / 2), round(mean))


class BeerGame(Game):
    """Cooperative supply chain: retailer, wholesaler, distributor and factory order from each other, all at once.

    Rules and costs are those of Sterman (1989): orders take a week, shipments two; a unit in stock costs 0.5 a week,
    one in a backlog 1. Each seat sees its own stage alone. Rewards are costs, divided by -100: those of the own stage
    after each week, those of the others at the end, since they are hidden before, so that all seats have the same
    return. The score is the lowest expected cost of an agent that sees all stages, divided by the cost; a game with a
    score of at least ``success_score`` is a success of all seats. A seat that forfeits loses the game for all, at the
    largest cost. Metrics: costs, variances of demand and of each stage's orders, and the bullwhip, the factory's
    variance divided by that of demand. The anchor is the own stage.

    >>> game = BeerGame(demand="step", weeks=10)
    >>> game.begin(np.random.default_rng(0), {})
    >>> game.commit(dict.fromkeys(range(4), "4")), game.commit({0: "8", 1: "4", 2: "4", 3: "4"})
    ([-0.12, -0.12, -0.12, -0.12], [-0.06, -0.04, -0.06, -0.06])
    """

    name = "beer_game"
    is_cooperative = True
    is_simultaneous = True
    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("echo of the rules", "first legal", "last legal", "alphabetically last", "longest text"),
            *("last winner's first action", "winners' most frequent action"),
        ),
        "random orders are three times the demand, so that always ordering the same, or less, costs less.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "base_stock": f"{_PLAYERS}:BaseStock",
        "anchoring": f"{_PLAYERS}:Anchoring",
        "pass_on": f"{_PLAYERS}:PassOn",
    }

    class Options(BaseOptions):
        demand: Literal["poisson", "step"] = "poisson"
        """Demand of customers: Poisson with a mean that all know, or 4 for four weeks and then 8, unknown to all."""
        mean: Annotated[float, between(1, 12)] = 8.0
        """Mean of Poisson demand."""
        weeks: Annotated[int, between(10, 100)] = 36
        """Weeks of a game; nothing is ordered in the last one."""
        backlog: Literal["all", "customers"] = "all"
        """Backlog that costs: of all stages, or of customers alone, at the retailer."""
        success_score: Annotated[float, between(0.01, 1)] = 0.3
        """Lowest score of a success."""

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(len(NAMES))
        chosen = self.options
        self.score_range = 0.0, _HIGHEST_SCORE
        self.finite_instances = 1 if chosen.demand == "step" else None
        others = BACKLOG if chosen.backlog == "all" else 0
        self._owing = (BACKLOG, *[others] * (len(NAMES) - 1))
        self._legal = tuple(map(str, range(LARGEST_ORDER + 1)))
        self._set_up(step_demand(chosen.weeks))

    _constructor = __init__

    def _set_up(self, demand: list[int]) -> None:
        self._demand = demand
        self.chain = BeerChain(start_of(self.options.demand, self.options.mean), self._owing)
        self.weeks: list[Week] = [self.chain.advance(demand[0])]
        """The weeks that are over."""
        self.orders: list[list[int]] = []
        """The orders of all stages after each week but the last."""
        self._is_lost = False

    def instructions(self, seat: int) -> str:
        """Return the rules for a stage."""
        chosen = self.options
        demand = (
            f"Customers order a random number of units, Poisson with mean {chosen.mean:g}."
            if chosen.demand == "poisson"
            else "It is not known how much customers will order."
        )
        return text.instructions(seat, chosen.weeks, demand, LARGEST_ORDER, chosen.backlog == "all")

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw the demand of all weeks; ``{"demand": [8, ...]}`` fixes it."""
        self.require_known(options, ["demand"])
        self.news.clear()
        weeks = self.options.weeks
        self._set_up(self._fixed(options["demand"]) if "demand" in options else self._drawn(weeks, generator))
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}, the {NAMES[seat]}.")
        self._report()

    def _drawn(self, weeks: int, generator: np.random.Generator) -> list[int]:
        is_step = self.options.demand == "step"
        return (
            step_demand(self.options.weeks)[-weeks:] if is_step else draw(poisson(self.options.mean), weeks, generator)
        )

    def _fixed(self, given: Any) -> list[int]:
        """Return a demand that options fix.

        Raises:
            ConfigError: It is none.
        """
        weeks = self.options.weeks
        is_list = isinstance(given, list | tuple) and len(given) == weeks
        if not is_list or not all(type(each) is int and 0 <= each <= LARGEST_DEMAND for each in given):
            wanted = f"{weeks} whole numbers from 0 to {LARGEST_DEMAND}"
            raise ConfigError(f"demand of {self.name} must be a list of {wanted}, got {given!r:.80}.")
        return list(given)

    def _report(self) -> None:
        """Tell every seat about its week."""
        week = self.weeks[-1]
        for seat in self.everyone:
            below, _ = text.partners(seat)
            moved = (
                f"{week.arrived[seat]} arrived, {below} ordered {week.ordered[seat]}, you shipped {week.shipped[seat]}"
            )
            cost = text.money(week.costs[seat])
            self.tell((seat,), f"Week {len(self.weeks)}: {moved}. This week cost you {cost}.")

    # Decisions.

    @property
    def _is_over(self) -> bool:
        return self._is_lost or len(self.weeks) == self.options.weeks

    def asked(self) -> tuple[int, ...]:
        """Return all seats."""
        return () if self._is_over else self.everyone

    def prompt(self, seat: int) -> str:
        """Return the stage's numbers and the question."""
        return f"{self._stage(seat)}\nHow many units do you order, from 0 to {LARGEST_ORDER}?"

    def _stage(self, seat: int) -> str:
        chain = self.chain
        numbers = (
            f"{chain.stock[seat]} in stock, {chain.backlog[seat]} owed, {chain.on_order(seat)} ordered and not arrived"
        )
        return (
            f"Week {len(self.weeks)} of {self.options.weeks}. {NAMES[seat].capitalize()}: {numbers}. Your cost so far: "
            f"{text.money(self._paid(seat))}."
        )

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return all numbers of units."""
        return self._legal

    def read(self, seat: int, text: str) -> str:
        """Return the number that an answer names."""
        try:
            return read_choice(text, _MEANINGS)
        except InvalidAction as error:
            reason = f"{error.reason} Name a whole number from 0 to {LARGEST_ORDER}."
            raise InvalidAction(reason, error.kind) from None

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take the orders and the next week, and pay for it."""
        is_first = not self.orders
        self.orders.append([int(actions[seat]) for seat in self.everyone])
        self.chain.placed = list(self.orders[-1])
        self.weeks.append(self.chain.advance(self._demand[len(self.weeks)]))
        self._report()
        if self._is_over:
            costs = ", ".join([f"{name} {text.money(self._paid(seat))}" for seat, name in enumerate(NAMES)])
            self.tell(self.everyone, f"The game is over. It cost {text.money(self._total())}: {costs}.")
            total = self._total()
            return [self._reward(total - self._paid(seat) + self.weeks[-1].costs[seat]) for seat in self.everyone]
        paid = self.weeks if is_first else self.weeks[-1:]
        return [self._reward(sum([week.costs[seat] for week in paid])) for seat in self.everyone]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game, lost by all at the largest cost of the weeks to come."""
        for seat in seats:
            self.tell(self.everyone, f"The {NAMES[seat]} gave no legal action: the game is lost.")
        self._is_lost = True
        left = (self.options.weeks - len(self.weeks)) * len(NAMES) * MOST_PAID
        total, has_paid = self._total() + left, bool(self.orders)
        return [self._reward(total - has_paid * self._paid(seat)) for seat in self.everyone]

    @staticmethod
    def _reward(cost: int) -> float:
        return -cost / (COST_SCALE * THOUSAND)

    # What is known about the game.

    def _paid(self, seat: int) -> int:
        return sum([week.costs[seat] for week in self.weeks])

    def _total(self) -> int:
        return sum(map(self._paid, self.everyone))

    def role(self, seat: int) -> str:
        """Return the stage of a seat, which all know."""
        return NAMES[seat]

    def anchor(self, seat: int) -> str:
        """Return the stage's numbers, and all orders from it and of it."""
        received = " ".join([str(week.ordered[seat]) for week in self.weeks])
        own = " ".join([str(orders[seat]) for orders in self.orders]) or "none"
        return f"{self._stage(seat)}\nOrdered from you: {received}\nYour orders: {own}"

    def progress(self, seat: int) -> float:
        """Return the share of the orders that are made."""
        return 1.0 if self._is_over else len(self.orders) / (self.options.weeks - 1)

    def winners(self) -> tuple[int, ...]:
        """Return all seats after a game with a low cost."""
        return self.everyone if self._is_over and self.score(0) >= self.options.success_score else ()

    def score(self, seat: int) -> float:
        """Return the lowest expected cost divided by the cost; 0 for a lost game."""
        chosen = self.options
        if self._is_lost:
            return 0.0
        best = best_orders(chosen.demand, chosen.mean, chosen.weeks).cost
        return min(best * THOUSAND / max(self._total(), 1), _HIGHEST_SCORE)

    def metrics(self) -> dict[str, float]:
        """Return costs, variances of demand and orders, and the bullwhip, 0 where demand does not vary."""
        asked = float(pvariance([week.ordered[0] for week in self.weeks]))
        found = {"cost": self._total() / THOUSAND, "demand_variance": asked}
        found |= {f"cost_{name}": self._paid(seat) / THOUSAND for seat, name in enumerate(NAMES)}
        for seat, name in enumerate(NAMES):
            found[f"order_variance_{name}"] = float(pvariance([each[seat] for each in self.orders] or [0]))
        return found | {"bullwhip": found[f"order_variance_{NAMES[-1]}"] / asked if asked else 0.0}

    def state(self) -> JSONValue:
        """Return the chain, demand, and what has happened."""
        return {
            "chain": self.chain.state(),
            "demand": list(self._demand),
            "weeks": [[list(numbers) for numbers in week] for week in self.weeks],
            "orders": [list(each) for each in self.orders],
            "is_lost": self._is_lost,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        demand, orders = list(state["demand"]), [list(each) for each in state["orders"]]
        weeks = [Week(*[tuple(numbers) for numbers in week]) for week in state["weeks"]]
        counts = [len(numbers) for week in weeks for numbers in week] + [len(each) for each in orders]
        if {*counts} != {len(NAMES)} or not len(orders) + 1 == len(weeks) <= len(demand) == self.options.weeks:
            raise ValueError(f"{len(weeks)} weeks, {len(orders)} orders and {len(demand)} demands")
        require_units([*demand, *(n for each in orders for n in each), *(n for w in weeks for each in w for n in each)])
        self.chain.load(state["chain"])
        self._demand, self.weeks, self.orders, self._is_lost = demand, weeks, orders, state["is_lost"] is True

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw the demand to come again, and stocks, backlogs and shipments that the seat cannot know."""
        if self._is_over:
            return False
        before, chain = self.state(), self.chain
        self._demand[len(self.weeks) :] = self._drawn(self.options.weeks - len(self.weeks), generator)
        for stage in self.everyone:
            if stage == seat:
                continue
            if stage != seat - 1:  # what it has shipped to its customer it knows
                chain.coming[stage] = generator.integers(0, LARGEST_ORDER, len(chain.coming[stage])).tolist()
            if chain.stock[stage]:
                chain.stock[stage] = 1 + int(generator.integers(2 * chain.stock[stage]))
            elif stage != seat + 1:  # what its supplier owes is a part of what it has ordered
                chain.backlog[stage] = int(generator.integers(2 * chain.backlog[stage] + 1))
        return bool(self.state() != before)
