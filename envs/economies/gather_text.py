"""Words of the game of gathering and building."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.economies.settlement import (
    BASE_PAY,
    CURVE,
    DISLIKE,
    HUNDRED,
    LABOUR,
    LARGEST_PRICE,
    MOST_PAY,
    QUARTERS,
    SIZE,
    Order,
)
from turngym.envs.economies.tax_text import PLANNER, WORKER, number


def coins(amount: int) -> str:
    """Return hundredths of a coin in coins, exactly: with one decimal, 2.98 would read as 3.

    >>> coins(298), coins(1250), coins(-300)
    ('2.98', '12.5', '-3')
    """
    return number(amount / HUNDRED, decimals=2)


def shown_orders(orders: Sequence[Order]) -> str:
    """Return open orders.

    >>> shown_orders([Order(1, "sell", "wood", 3)]), shown_orders([])
    ('player_1 sells wood at 3', 'none')
    """
    shown = [f"player_{each.worker} {each.side}s {each.resource} at {each.price}" for each in orders]
    return "; ".join(shown) or "none"


def instructions(role: str, steps: int, tax_period: int, floors: Sequence[int], regrowth: float) -> str:
    """Return the rules for a role.

    Args:
        role: ``"planner"`` or ``"worker"``.
        steps: Steps of the game.
        tax_period: Steps from a tax to the next.
        floors: Income at which each bracket begins, in coins.
        regrowth: Chance that a resource grows again, in each step.
    """
    low, high = BASE_PAY // HUNDRED, MOST_PAY // HUNDRED
    move, gather, order, build = (f"{LABOUR[each] / QUARTERS:g}" for each in ("move", "gather", "order", "build"))
    goal = {
        PLANNER: "You are the planner: make equality times mean coins at the end as large as you can, where equality "
        "is 1 minus the difference of the workers' coins, divided by their sum. You see the map and the orders, and "
        "after a tax incomes and coins. Answer with the rates in percent, the lower bracket first, in brackets, such "
        "as [20 40].",
        WORKER: "You are a worker: make your utility at the end as large as you can. With C coins and L labour it is "
        f"(C^{1 - CURVE:g} - 1) / {1 - CURVE:g} - {DISLIKE:g} L. Answer with an action in brackets: [north], [south], "
        "[west], [east], [build], [stay], or an order such as [sell wood 3] or [buy stone 2], for one unit at 1 to "
        f"{LARGEST_PRICE} coins.",
    }[role]
    return (
        f"Two workers, player_0 and player_1, act at once in {steps} steps on a grid of {SIZE} x {SIZE} cells, and a "
        "planner, player_2, taxes them. On the map A is player_0 and B player_1; a and b are their houses; T is wood "
        "and R stone; t and r are cells where they were gathered and grow again, each with a chance of "
        f"{regrowth:g} in a step; a dot is a free cell; north is up. Below the map you read what A and B stand on. "
        "Moving onto T or R gathers one unit, or two with a chance from 50 to 100% that only the worker knows. "
        "Moves onto the other worker or its house fail. A house "
        f"needs one wood, one stone, and a free cell under the worker; it pays {low} to {high} coins, which only the "
        f"worker knows. Labour is {move} for a move, {gather} more for gathering, {build} for building and {order} for "
        "an order. An order is traded when another one fits, at the price of the older one. It is open until then, "
        "until the worker makes a new one for the same resource, or until taxes are due. A new order that the worker "
        "can no longer pay or deliver, as the earlier one has just been traded, does nothing.\n"
        f"Every {tax_period} steps the coins that a worker has earned since the last tax are taxed: at the first rate "
        f"up to {floors[1]}, at the second above. Half of all taxes goes to each worker. The planner sets both rates, "
        f"multiples of 10 from 0 to 100, before the first step and after each tax but the last.\n{goal}"
    )
