"""One week after the other of the beer game: shipments, orders, backlogs and costs of four stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turngym.envs.inventory.chain import THOUSAND, Stage, Stocks, require_units
from turngym.types import JSONValue

NAMES = ("retailer", "wholesaler", "distributor", "factory")
"""Stages from the one that sells to customers to the one that produces."""
LEAD = 2
"""Weeks from a shipment, or the start of a production, to its arrival."""
HOLDING, BACKLOG = THOUSAND // 2, THOUSAND
"""Weekly cost of a unit in stock, and of one that is owed, in thousandths."""
MOST_PAID = 100 * THOUSAND
"""Largest cost of a stage in a week, in thousandths."""
_LAST = len(NAMES) - 1


class Start(NamedTuple):
    """Units at the start.

    Args:
        stock: In stock at each stage.
        arriving: In each shipment and each order on the way.
    """

    stock: int
    arriving: int


class Week(NamedTuple):
    """A week, with a number for each stage.

    Args:
        arrived: Units that arrived.
        ordered: Units that were ordered from the stage.
        shipped: Units that it shipped.
        costs: Cost of its stock and backlog, in thousandths.
    """

    arrived: tuple[int, ...]
    ordered: tuple[int, ...]
    shipped: tuple[int, ...]
    costs: tuple[int, ...]


def stages(start: Start) -> tuple[Stage, ...]:
    """Return the stages as :mod:`turngym.envs.inventory` has them; units on the way cost nothing."""
    return tuple([Stage(name, start.stock, LEAD, 0, HOLDING, 0) for name in NAMES])


class BeerChain(Stocks):
    """Stocks, backlogs and orders on the way, by the rules of Sterman (1989).

    Args:
        start: Units at the start.
        owing: Cost of a unit in the backlog of each stage, in thousandths.

    >>> chain = BeerChain(Start(12, 4))
    >>> chain.advance(8)
    Week(arrived=(4, 4, 4, 4), ordered=(8, 4, 4, 4), shipped=(8, 4, 4, 4), costs=(4000, 6000, 6000, 6000))
    >>> chain.placed = [8, 4, 4, 4]
    >>> chain.advance(8).ordered, chain.on_order(0)
    ((8, 8, 4, 4), 12)
    """

    def __init__(self, start: Start, owing: Sequence[int] = (BACKLOG,) * len(NAMES)) -> None:
        super().__init__(stages(start), start.arriving)
        self.owing = owing
        self.backlog = [0] * len(NAMES)
        self.placed = [start.arriving] * len(NAMES)
        """Orders that reach the suppliers in the next week; those of the factory start production."""

    def advance(self, demand: int) -> Week:
        """Take a week: shipments arrive, then orders; stages ship what they can, and pay for stock and backlog.

        Args:
            demand: Units that customers order.
        """
        arrived = self.receive()
        ordered = (demand, *self.placed[:_LAST])
        shipped = [min(self.stock[at], ordered[at] + self.backlog[at]) for at in range(len(NAMES))]
        self.stock[0] -= shipped[0]
        for stage, units in enumerate([*shipped[1:], self.placed[_LAST]]):
            self.send(stage, units)
        self.placed = [0] * len(NAMES)
        self.backlog = [self.backlog[at] + ordered[at] - shipped[at] for at in range(len(NAMES))]
        costs = [
            min(HOLDING * stock + owing * backlog, MOST_PAID)
            for stock, backlog, owing in zip(self.stock, self.backlog, self.owing, strict=True)
        ]
        return Week(tuple(arrived), ordered, tuple(shipped), tuple(costs))

    def on_order(self, stage: int) -> int:
        """Return the units that a stage has ordered and not received."""
        owed = self.backlog[stage + 1] if stage < _LAST else 0
        return self.placed[stage] + owed + sum(self.coming[stage])

    def state(self) -> JSONValue:
        """Return stocks, units on the way, backlogs and orders on the way."""
        return {**super().state(), "backlog": list(self.backlog), "placed": list(self.placed)}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        backlog, placed = list(state["backlog"]), list(state["placed"])
        if len(backlog) != len(NAMES) or len(placed) != len(NAMES):
            raise ValueError(f"{len(backlog)} backlogs and {len(placed)} orders")
        require_units([*backlog, *placed])
        super().load(state)
        self.backlog, self.placed = backlog, placed
