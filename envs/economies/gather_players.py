"""Players of the game of gathering and building."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, cast

import numpy as np

from turngym.envs.economies.settlement import (
    BUILD,
    DISLIKE,
    LABOUR,
    MOVES,
    QUARTERS,
    RESOURCES,
    SIZE,
    STAY,
    STONE,
    WOOD,
    utility,
)
from turngym.envs.economies.tax_text import PLANNER
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView

_HAS = re.compile(r"you have ([0-9]{1,6}) wood, ([0-9]{1,6}) stone, ([0-9.]{1,12}) coins, (-?[0-9.]{1,12}) of them")
_RATES = re.compile(r"tax rates: ([0-9]{1,3})% up to ([0-9]{1,6}), ([0-9]{1,3})% above")
_PAY = re.compile(r"A house pays you ([0-9.]{1,8}[0-9])")
_STEP = re.compile(r"Step ([0-9]{1,4}) of ([0-9]{1,4})")
_INCOMES = re.compile(r"incomes were player_0 ([0-9.]{1,12}), player_1 ([0-9.]{1,12});")
_SALE = re.compile(r"player_([01]) sells (wood|stone) at ([0-9]{1,2})")
_LETTERS = {WOOD: "T", STONE: "R"}


class Sight(NamedTuple):
    """What a worker sees.

    Args:
        board: Rows of the map.
        held: Units of each resource that are not offered for sale.
        coins: Coins.
        kept: Share of the next income that taxes leave.
        pay: Coins for a house.
        left: Steps left, this one included.
    """

    board: Sequence[str]
    held: dict[str, int]
    coins: float
    kept: float
    pay: float
    left: int

    @classmethod
    def of(cls, view: SeatView) -> Sight:
        """Read a view."""
        anchor = view.anchor
        has, rates, pay = (cast(re.Match[str], each.search(anchor)) for each in (_HAS, _RATES, _PAY))
        step = cast(re.Match[str], _STEP.match(anchor))
        rate = int(rates[1] if float(has[4]) < int(rates[2]) else rates[3])
        held = {WOOD: int(has[1]), STONE: int(has[2])}
        for seller, resource, _ in _SALE.findall(anchor):
            held[resource] -= int(seller) == view.seat
        left = int(step[2]) - int(step[1]) + 1
        return cls(anchor.split("\n")[1 : SIZE + 1], held, float(has[3]), 1 - rate / 100, float(pay[1]), left)

    @property
    def gain(self) -> float:
        """Utility that the payment for a house adds."""
        return utility(self.coins + self.kept * self.pay, 0) - utility(self.coins, 0)

    def way(self, seat: int, is_goal: Callable[[str], bool]) -> list[str]:
        """Return the moves to the closest cell whose letter is a goal; empty if there is none."""
        own, other = "Aa" if not seat else "Bb", "Bb" if not seat else "Aa"
        flat = "".join(self.board)
        start = flat.index(own[0])
        seen, queue = {start}, deque([(start, cast(list[str], []))])
        while queue:
            cell, moves = queue.popleft()
            for name, (down, right) in MOVES.items():
                row, column = cell // SIZE + down, cell % SIZE + right
                place = row * SIZE + column
                if not (0 <= row < SIZE and 0 <= column < SIZE) or place in seen or flat[place] in other:
                    continue
                if is_goal(flat[place]):
                    return [*moves, name]
                seen.add(place)
                queue.append((place, [*moves, name]))
        return []


def _cost(action: str) -> float:
    """Return the utility that an action costs."""
    return DISLIKE * LABOUR[action] / QUARTERS


class Greedy(Player):
    """A worker builds as long as a house adds more utility than its labour costs; taxes are high if incomes differ.

    It fetches what is missing from the closest cell. The planner starts with low rates, since taxes that one worker
    gains from make both work less; after a tax it takes those that suit the ratio of incomes.
    """

    name = "greedy"
    first: ClassVar[str] = "0 10"
    by_ratio: ClassVar[Sequence[tuple[float, str]]] = ((0.6, "0 0"), (0.45, "10 10"), (0.0, "30 30"))
    """Smallest ratio of the lower income to the higher one, and rates."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember; everything is in the view."""

    def act(self, view: SeatView) -> str:
        """Return rates, or what brings the next house closer."""
        return self.rates(view) if view.role == PLANNER else self.work(view, Sight.of(view), view.legal_actions)

    def rates(self, view: SeatView) -> str:
        """Return the rates of a planner."""
        found = _INCOMES.search("\n".join(view.new_lines))
        if found is None:
            return self.first
        low, high = sorted(map(float, found.groups()))
        return next(rates for ratio, rates in self.by_ratio if low >= ratio * high)

    def work(self, view: SeatView, sight: Sight, legal: Sequence[str]) -> str:
        """Return the action of a worker."""
        missing = [resource for resource in RESOURCES if not sight.held[resource]]
        if BUILD in legal:
            return BUILD if sight.gain > _cost("build") else STAY
        letters = {_LETTERS[resource] for resource in missing} or {"."}
        way = sight.way(view.seat, letters.__contains__)
        needed = len(way) + bool(missing) + 2 * (len(missing) > 1)
        labour = len(way) * _cost("move") + len(missing) * (_cost("gather") + _cost("move")) + _cost("build")
        if not way or way[0] not in legal or needed >= sight.left or sight.gain <= labour:
            return STAY
        return way[0]


class Trader(Greedy):
    """As greedy, but it offers what it has too much of for 2 coins, and buys what is missing at up to 3."""

    name = "trader"
    price: ClassVar[int] = 2
    most: ClassVar[int] = 3

    def work(self, view: SeatView, sight: Sight, legal: Sequence[str]) -> str:
        """Return an order where one is useful, else the action of a greedy worker."""
        orders = next(line for line in view.anchor.split("\n") if line.startswith("orders: "))
        for seller, resource, price in _SALE.findall(orders):
            wanted = f"buy {resource} {price}"
            if int(seller) != view.seat and not sight.held[resource] and int(price) <= self.most and wanted in legal:
                return wanted
        for resource in RESOURCES:
            wanted = f"sell {resource} {self.price}"
            is_open = f"player_{view.seat} sells {resource}" in orders
            if sight.held[resource] > 1 and not is_open and wanted in legal:
                return wanted
        return super().work(view, sight, legal)


class Untaxed(Greedy):
    """As greedy, but rates are 0."""

    name = "untaxed"

    def rates(self, view: SeatView) -> str:
        """Return no taxes."""
        return "0 0"
