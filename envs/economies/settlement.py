"""Workers on a grid: they move, gather wood and stone, build houses, and trade; utility of coins and labour.

Labour and utility have the parameters of the AI Economist (Zheng et al., 2020). Money is counted in hundredths of a
coin, labour in quarters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from turngym.types import JSONValue

SIZE = 7
CELLS = SIZE * SIZE
WORKERS = 2
WOOD, STONE = "wood", "stone"
RESOURCES = (WOOD, STONE)
MOVES = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}
BUY, SELL = "buy", "sell"
BUILD, STAY = "build", "stay"
HUNDRED, QUARTERS = 100, 4
LABOUR = {"move": 4, "gather": 4, "order": 1, "build": 40}
"""Labour of an action, in quarters."""
DISLIKE = 0.21
"""Utility that a unit of labour costs."""
CURVE = 0.23
"""Exponent of isoelastic utility."""
LARGEST_PRICE = 10
BASE_PAY, MOST_PAY = 1000, 3000
"""Payment for a house of the least skilled worker, and the largest."""
PAY_TAIL, BONUS_TAIL = 4, 3
"""Exponents of the Pareto distributions of skill."""


def utility(coins: float, labour: float) -> float:
    """Return isoelastic utility of coins, less the cost of labour.

    >>> round(utility(100, 50), 6)
    33.232059
    """
    return float((coins ** (1 - CURVE) - 1) / (1 - CURVE) - DISLIKE * labour)


class Talents(NamedTuple):
    """What a worker is good at, known to nobody else.

    Args:
        pay: Payment for a house, in hundredths.
        bonus: Percentage of gathers that bring two units.
    """

    pay: int
    bonus: int

    @classmethod
    def draw(cls, generator: np.random.Generator) -> Talents:
        """Draw talents from Pareto distributions, of which payment is capped."""
        first, second = (1 - generator.random(2)).tolist()
        pay = min(round(BASE_PAY * first ** (-1 / PAY_TAIL)), MOST_PAY)
        return cls(pay, round(HUNDRED * min(2.0, second ** (-1 / BONUS_TAIL)) / 2))


class Order(NamedTuple):
    """An offer of one unit.

    Args:
        worker: Who made it.
        side: ``"buy"`` or ``"sell"``.
        resource: ``"wood"`` or ``"stone"``.
        price: Whole coins.
    """

    worker: int
    side: str
    resource: str
    price: int


class Settlement:
    """The grid and what workers have; actions change it.

    Args:
        sources: Cell -> resource that grows there.
        positions: Cell of each worker.
        talents: Talents of each worker.

    >>> grid = Settlement({1: "wood"}, [0, 48], [Talents(1000, 50)] * 2)
    >>> news = grid.act(0, "east", 0.9)
    >>> grid.positions, grid.held[0], grid.labour, news
    ([1, 48], {'wood': 1, 'stone': 0}, [8, 0], [((0,), 'You gather 1 wood.')])
    """

    def __init__(self, sources: Mapping[int, str], positions: Sequence[int], talents: Sequence[Talents]) -> None:
        self.sources, self.positions, self.talents = dict(sources), list(positions), list(talents)
        self.full = set(sources)
        """Cells whose resource has not been gathered."""
        self.houses: dict[int, int] = {}
        """Cell -> worker who built there."""
        self.held = [dict.fromkeys(RESOURCES, 0) for _ in range(WORKERS)]
        self.coins, self.labour = [0] * WORKERS, [0] * WORKERS
        self.orders: list[Order] = []
        """Open orders, the oldest first; what they offer still counts as held."""

    @classmethod
    def draw(cls, generator: np.random.Generator, count: int, talents: Sequence[Talents]) -> Settlement:
        """Draw cells for sources and workers.

        Args:
            generator: Samples the cells.
            count: Sources of each resource.
            talents: Talents of each worker.
        """
        cells = generator.permutation(CELLS)[: len(RESOURCES) * count + WORKERS].tolist()
        sources = {cell: RESOURCES[place % 2] for place, cell in enumerate(cells[WORKERS:])}
        return cls(sources, cells[:WORKERS], talents)

    # What is allowed.

    def step(self, worker: int, direction: str) -> int | None:
        """Return the cell in a direction, None outside of the grid and where another worker's house stands."""
        row, column = divmod(self.positions[worker], SIZE)
        down, right = MOVES[direction]
        row, column = row + down, column + right
        cell = row * SIZE + column
        if not (0 <= row < SIZE and 0 <= column < SIZE) or self.houses.get(cell, worker) != worker:
            return None
        return cell

    def can_build(self, worker: int) -> bool:
        """Return whether a worker has a unit of each resource that it does not offer, on a cell that is free."""
        cell = self.positions[worker]
        is_free = cell not in self.sources and cell not in self.houses
        return is_free and all(self._spare(worker, resource) >= 1 for resource in RESOURCES)

    def _spare(self, worker: int, resource: str, but: str = "") -> int:
        """Return the units that a worker does not offer; an offer of the resource ``but`` is to be replaced."""
        offered = sum([1 for each in self._own(worker) if each.side == SELL and each.resource == resource != but])
        return self.held[worker][resource] - offered

    def _funds(self, worker: int, resource: str) -> int:
        """Return the whole coins that a worker does not bid for other resources."""
        bids = [each.price for each in self._own(worker) if each.side == BUY and each.resource != resource]
        return self.coins[worker] // HUNDRED - sum(bids)

    def _covers(self, new: Order) -> bool:
        """Return whether a worker has what an order offers, once it replaces the one for the same resource."""
        if new.side == BUY:
            return new.price <= self._funds(new.worker, new.resource)
        return self._spare(new.worker, new.resource, but=new.resource) >= 1

    def _own(self, worker: int) -> list[Order]:
        return [order for order in self.orders if order.worker == worker]

    def allowed(self, worker: int) -> tuple[str, ...]:
        """Return the legal actions of a worker."""
        found = [direction for direction in MOVES if self.step(worker, direction) is not None]
        if self.can_build(worker):
            found.append(BUILD)
        for resource in RESOURCES:
            most = min(self._funds(worker, resource), LARGEST_PRICE)
            found += [f"{BUY} {resource} {price}" for price in range(1, most + 1)]
            if self._spare(worker, resource, but=resource) >= 1:
                found += [f"{SELL} {resource} {price}" for price in range(1, LARGEST_PRICE + 1)]
        return (*found, STAY)

    # What happens.

    def act(self, worker: int, action: str, luck: float) -> list[tuple[tuple[int, ...], str]]:
        """Take an action, and return lines with the workers that read them; nobody named means all.

        Args:
            worker: Who acts.
            action: An action that was legal when the step began. What the other worker has done since may prevent it:
                a move to a cell that is taken and an order that is no longer covered do nothing.
            luck: In [0, 1); below the worker's bonus a gather brings two units.
        """
        if action in MOVES:
            return self._move(worker, self.step(worker, action), luck)
        if action == BUILD and self.can_build(worker):
            cell = self.positions[worker]
            self.houses[cell] = worker
            self.coins[worker] += self.talents[worker].pay
            self.labour[worker] += LABOUR["build"]
            for resource in RESOURCES:
                self.held[worker][resource] -= 1
            row, column = divmod(cell, SIZE)
            return [((), f"player_{worker} builds a house in row {row + 1}, column {column + 1}.")]
        side, _, rest = action.partition(" ")
        if side in (BUY, SELL):
            resource, _, price = rest.partition(" ")
            return self._order(Order(worker, side, resource, int(price)))
        return []

    def _move(self, worker: int, cell: int | None, luck: float) -> list[tuple[tuple[int, ...], str]]:
        if cell is None or cell in self.positions:
            return [((worker,), "The way is blocked.")]
        self.positions[worker] = cell
        self.labour[worker] += LABOUR["move"]
        if cell not in self.full:
            return []
        self.full.discard(cell)
        units = 2 if HUNDRED * luck < self.talents[worker].bonus else 1
        self.held[worker][self.sources[cell]] += units
        self.labour[worker] += LABOUR["gather"]
        return [((worker,), f"You gather {units} {self.sources[cell]}.")]

    def _order(self, new: Order) -> list[tuple[tuple[int, ...], str]]:
        """Trade with an order that fits, at its price, or leave the order open in place of an earlier one."""
        if not self._covers(new):
            return [((new.worker,), f"You can no longer {new.side} {new.resource} for {new.price}.")]
        self.labour[new.worker] += LABOUR["order"]
        self.orders = [each for each in self.orders if (each.worker, each.resource) != (new.worker, new.resource)]
        for other in self.orders:
            if other.resource != new.resource or other.side == new.side:
                continue
            buyer, seller = (new, other) if new.side == BUY else (other, new)
            if buyer.price >= seller.price:
                self.orders.remove(other)
                self._trade(buyer.worker, seller.worker, other)
                told = f"player_{seller.worker} sells {new.resource} to player_{buyer.worker} for {other.price}."
                return [((), told)]
        self.orders.append(new)
        return []

    def _trade(self, buyer: int, seller: int, order: Order) -> None:
        self.held[buyer][order.resource] += 1
        self.held[seller][order.resource] -= 1
        self.coins[buyer] -= HUNDRED * order.price
        self.coins[seller] += HUNDRED * order.price

    def regrow(self, chance: float, generator: np.random.Generator) -> None:
        """Let resources grow again where they have been gathered."""
        empty = sorted(set(self.sources) - self.full)
        self.full |= {
            cell for cell, draw in zip(empty, generator.random(len(empty)).tolist(), strict=True) if draw < chance
        }

    def _cells(self) -> list[str]:
        """Return the letter of each cell without workers."""
        cells = ["."] * CELLS
        for cell, resource in self.sources.items():
            letter = "t" if resource == WOOD else "r"
            cells[cell] = letter.upper() if cell in self.full else letter
        for cell, worker in self.houses.items():
            cells[cell] = "ab"[worker]
        return cells

    def ground(self) -> str:
        """Return what the workers stand on, in the letters of the board."""
        cells = self._cells()
        return ", ".join([f"{letter} on {cells[cell]}" for letter, cell in zip("AB", self.positions, strict=True)])

    def board(self) -> list[str]:
        """Return the rows of the grid: workers A and B, their houses a and b, wood T, stone R, gathered t and r."""
        cells = self._cells()
        for worker, cell in enumerate(self.positions):
            cells[cell] = "AB"[worker]
        return ["".join(cells[row * SIZE : row * SIZE + SIZE]) for row in range(SIZE)]

    # Saving.

    def state(self) -> JSONValue:
        """Return everything."""
        return {
            "sources": sorted([cell, resource] for cell, resource in self.sources.items()),
            "full": sorted(self.full),
            "houses": [[cell, worker] for cell, worker in self.houses.items()],
            "positions": list(self.positions),
            "talents": [list(each) for each in self.talents],
            "held": [[each[resource] for resource in RESOURCES] for each in self.held],
            "coins": list(self.coins),
            "labour": list(self.labour),
            "orders": [list(each) for each in self.orders],
        }

    @classmethod
    def restored(cls, state: Any) -> Settlement:
        """Return the settlement of a state.

        Raises:
            ValueError: None can be in this state.
        """
        sources, houses = dict(state["sources"]), dict(state["houses"])
        found = cls(sources, state["positions"], [Talents(*each) for each in state["talents"]])
        found.full, found.houses = set(state["full"]), houses
        found.held = [dict(zip(RESOURCES, each, strict=True)) for each in state["held"]]
        found.coins, found.labour = list(state["coins"]), list(state["labour"])
        found.orders = [Order(*each) for each in state["orders"]]
        found._require_possible()
        return found

    def _require_possible(self) -> None:
        cells = [*self.sources, *self.houses, *self.positions]
        counts = [*self.coins, *self.labour, *(units for each in self.held for units in each.values())]
        lists = self.positions, self.talents, self.held, self.coins, self.labour
        fits = (
            all(type(cell) is int and 0 <= cell < CELLS for cell in cells)
            and all(type(count) is int and 0 <= count < 10**9 for count in counts)
            and all(len(each) == WORKERS for each in lists)
            and len({*self.positions}) == WORKERS
            and set(self.sources.values()) <= {*RESOURCES}
            and self.full <= set(self.sources)
            and not set(self.houses) & set(self.sources)
            and all(type(owner) is int and owner in range(WORKERS) for owner in self.houses.values())
            and all(self.houses.get(cell, worker) == worker for worker, cell in enumerate(self.positions))
            and all(type(t.pay) is int and BASE_PAY <= t.pay <= MOST_PAY for t in self.talents)
            and all(type(t.bonus) is int and HUNDRED // 2 <= t.bonus <= HUNDRED for t in self.talents)
        )
        if not fits:
            raise ValueError("the settlement")
        for order in self.orders:
            is_open = type(order.worker) is int and order.worker in range(WORKERS) and order.side in (BUY, SELL)
            if not is_open or order.resource not in RESOURCES or type(order.price) is not int:
                raise ValueError(f"the order {order!r:.200}")
            same = [each for each in self._own(order.worker) if each.resource == order.resource]
            if not 1 <= order.price <= LARGEST_PRICE or len(same) > 1:
                raise ValueError(f"the order {order!r:.200}")
        for worker in range(WORKERS):
            bids = sum([HUNDRED * each.price for each in self._own(worker) if each.side == BUY])
            if bids > self.coins[worker] or any(self._spare(worker, resource) < 0 for resource in RESOURCES):
                raise ValueError(f"the orders of worker {worker}")
