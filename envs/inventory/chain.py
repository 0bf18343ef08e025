"""Dynamics of a serial supply chain: orders, deliveries, demand and profit of one period after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turngym.types import JSONValue

THOUSAND = 1000
"""Money is counted in thousandths, as whole numbers, so that sums are exact."""
_LARGEST = 10**9


@dataclass(frozen=True)
class Stage:
    """A stock of the chain. Costs are in thousandths of a unit of money.

    Args:
        name: Name in observations.
        stock: Units in stock at the start.
        lead: Periods from an order to its delivery.
        price: Price of a unit from the supplier.
        holding: Cost of a unit in stock at the end of a period.
        transit: Cost of a unit on the way at the end of a period.
    """

    name: str
    stock: int
    lead: int
    price: int
    holding: int
    transit: int


@dataclass(frozen=True)
class Chain:
    """A serial chain, from the stage that sells to the one that buys from a source without limits.

    Args:
        stages: The stages.
        sale: Price of a unit that is sold.
        penalty: Cost of a unit of demand that waits at the end of a period.
        output: Cost of a unit that the factory ships.
        capacity: Units that the factory can ship in a period.
        has_factory: Whether the last stage is a factory.
    """

    stages: tuple[Stage, ...]
    sale: int
    penalty: int
    output: int
    capacity: int
    has_factory: bool

    def order_cost(self, stage: int) -> int:
        """Return what a unit that a stage orders costs the chain; prices between its stages cancel."""
        last = len(self.stages) - 1
        if stage == last:
            return self.stages[stage].price
        return self.output if self.has_factory and stage == last - 1 else 0


SERIAL = (
    Stage("store", 100, 4, 1500, 30, 10),
    Stage("warehouse", 100, 4, 1000, 20, 5),
    Stage("factory", 200, 0, 500, 10, 0),
)
"""Stages of ``GymInvMgmt/Serial-v0`` of gym-invmgmt 0.2.1."""


def serial_chain(stages: int) -> Chain:
    """Return the first stages of the chain of gym-invmgmt; with less than three, the last buys without limits.

    >>> [stage.name for stage in serial_chain(2).stages], serial_chain(3).order_cost(1)
    (['store', 'warehouse'], 10)
    """
    return Chain(SERIAL[:stages], 2000, 100, 10, 100, stages == len(SERIAL))


class Period(NamedTuple):
    """Result of a period.

    Args:
        filled: Units that each stage's supplier shipped.
        sold: Units sold.
        profit: Profit of the whole chain in thousandths.
    """

    filled: tuple[int, ...]
    sold: int
    profit: int


class Stocks:
    """Stocks of stages that supply each other, and units on the way to them.

    Args:
        stages: From the one that sells to the one that buys from a source without limits.
        arriving: Units that arrive in each of the first periods.
    """

    def __init__(self, stages: Sequence[Stage], arriving: int = 0) -> None:
        self.stages = stages
        self.stock = [stage.stock for stage in stages]
        self.coming = [[arriving] * stage.lead for stage in stages]
        """Units on the way to each stage, by delivery: those of the next period first."""

    def send(self, stage: int, units: int) -> None:
        """Let the supplier of a stage ship units, which it has."""
        if stage + 1 < len(self.stock):
            self.stock[stage + 1] -= units
        self.coming[stage].append(units)

    def receive(self) -> list[int]:
        """Deliver what is due at each stage, and return it."""
        arrived = [coming.pop(0) for coming in self.coming]
        for stage, units in enumerate(arrived):
            self.stock[stage] += units
        return arrived

    def state(self) -> JSONValue:
        """Return stocks and units on the way."""
        return {"stock": list(self.stock), "coming": [list(each) for each in self.coming]}

    def load(self, state: JSONValue) -> None:
        """Restore what :meth:`state` returned.

        Raises:
            ValueError: It does not fit the stages.
        """
        stock, coming = list(state["stock"]), [list(each) for each in state["coming"]]
        if [len(each) for each in coming] != [stage.lead for stage in self.stages] or len(stock) != len(coming):
            raise ValueError(f"{len(stock)} stocks and {len(coming)} stages")
        require_units([*stock, *(units for each in coming for units in each)])
        self.stock, self.coming = stock, coming


def require_units(numbers: Sequence[object]) -> None:
    """Check that numbers of a state are counts of units.

    Raises:
        ValueError: One is not.
    """
    if not all(type(each) is int and 0 <= each <= _LARGEST for each in numbers):
        raise ValueError(f"the numbers {numbers!s:.100}")


class ChainState(Stocks):
    """Stocks, units on the way and waiting demand of a chain.

    Args:
        chain: The chain.

    >>> state = ChainState(serial_chain(3))
    >>> state.advance([20, 20, 20], demand=25)
    Period(filled=(20, 20, 20), sold=25, profit=33650)
    >>> state.stock, state.coming
    ([75, 80, 200], [[0, 0, 0, 20], [0, 0, 0, 20], []])
    """

    def __init__(self, chain: Chain) -> None:
        super().__init__(chain.stages)
        self.chain = chain
        self.waiting = 0
        """Demand that could not be met so far."""

    def available(self, stage: int) -> int | None:
        """Return how much the supplier of a stage can ship in this period; None for any amount."""
        supplier = stage + 1
        if supplier == len(self.stock):
            return None
        is_factory = self.chain.has_factory and supplier == len(self.stock) - 1
        return min(self.stock[supplier], self.chain.capacity) if is_factory else self.stock[supplier]

    def position(self, stage: int) -> int:
        """Return the echelon inventory position: all units at, below and on the way to a stage, less waiting demand."""
        return sum(self.stock[: stage + 1]) + sum(map(sum, self.coming[: stage + 1])) - self.waiting

    def advance(self, orders: Sequence[int], demand: int) -> Period:
        """Ship orders, deliver what has arrived, meet demand, and return what that brought.

        Args:
            orders: [stages] units, at least 0; a supplier ships at most what it had at the start of the period.
            demand: Units that customers want.
        """
        chain = self.chain
        limits = [self.available(stage) for stage in range(len(orders))]
        filled = [order if limit is None else min(order, limit) for order, limit in zip(orders, limits, strict=True)]
        for stage, units in enumerate(filled):
            self.send(stage, units)
        self.receive()
        wanted = demand + self.waiting
        sold = min(wanted, self.stock[0])
        self.stock[0] -= sold
        self.waiting = wanted - sold
        profit = chain.sale * sold - chain.penalty * self.waiting
        for stage, each in enumerate(chain.stages):
            profit -= chain.order_cost(stage) * filled[stage]
            profit -= each.holding * self.stock[stage] + each.transit * sum(self.coming[stage])
        return Period(tuple(filled), sold, profit)

    def state(self) -> JSONValue:
        """Return stocks, units on the way and waiting demand."""
        return {**super().state(), "waiting": self.waiting}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        require_units([state["waiting"]])
        super().load(state)
        self.waiting = state["waiting"]
