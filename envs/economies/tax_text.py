"""Words of the game of taxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from turngym.envs.economies.labour import COST, HUNDRED, LOG_SCALE, LONGEST, RATE_STEP, Economy, effort

PLANNER, WORKER = "planner", "worker"
HOURS = {
    form: str(hours)
    for hours in range(LONGEST + 1)
    for form in (f"{hours}", f"{hours} hours", f"work {hours}", f"work {hours} hours", f"i work {hours} hours")
}
"""Text -> hours in the notation of actions."""


def number(amount: float, decimals: int = 1) -> str:
    """Return an amount with at most so many decimals, at least one.

    >>> number(13959.16), number(320.0), number(-0.01), number(2.98, decimals=2)
    ('13959.2', '320', '0', '2.98')
    """
    text = f"{amount:.{decimals}f}".rstrip("0").removesuffix(".")
    return "0" if text == "-0" else text


def percentages(rates: Sequence[int]) -> str:
    """Return rates as an action writes them.

    >>> percentages((50, 40))
    '50 40'
    """
    return " ".join(map(str, rates))


def schedule(rates: Sequence[int], floors: Sequence[int]) -> str:
    """Return the rates of brackets.

    >>> schedule((50, 40, 30), (0, 1000, 4000)), schedule((50,), (0,))
    ('50% up to 1000, 40% up to 4000, 30% above', '50%')
    """
    if len(rates) == 1:
        return f"{rates[0]}%"
    parts = [f"{rate}% up to {floor}" for rate, floor in zip(rates, floors[1:], strict=False)]
    return ", ".join([*parts, f"{rates[-1]}% above"])


@lru_cache(maxsize=4)
def rate_meanings(brackets: int) -> dict[str, str]:
    """Return text -> rates in the notation of actions.

    >>> rate_meanings(2)["50%, 40%"]
    '50 40'
    """
    found = {}
    for rates in product(range(0, HUNDRED + 1, RATE_STEP), repeat=brackets):
        marked = [f"{rate}%" for rate in rates]
        for parts in (list(map(str, rates)), marked):
            for between in (" ", ", ", ",", "/", " / "):
                found[between.join(parts)] = percentages(rates)
    return found


def instructions(role: str, economy: Economy, skills: tuple[int, int], periods: int, largest: int) -> str:
    """Return the rules for a role.

    Args:
        role: ``"planner"`` or ``"worker"``.
        economy: Rules of the economy.
        skills: Smallest and largest skill.
        periods: Periods of the game.
        largest: Largest change of a rate in a period.
    """
    low, high = skills
    several = len(economy.floors) > 1
    begin = " and ".join(map(str, economy.floors[1:]))
    brackets = (
        f"Income is taxed by brackets, which begin at 0 and {begin}; each has a rate for the income within it."
        if several
        else "All income is taxed at one rate."
    )
    shared = (
        "All taxes of a period are shared equally by all workers."
        if economy.shares_own
        else "The taxes of each worker are shared equally by the other workers."
    )
    utility = "what is left of its income, plus its share of taxes, minus the effort of its hours"
    bent = f" If that is x, above 0, its utility is {LOG_SCALE} ln(1 + x / {LOG_SCALE})." if economy.is_log else ""
    welfare = (
        "the sum of the workers' utilities, each with a fixed weight: the inverse of the income that the worker would "
        "choose without taxes, scaled to a mean weight of 1"
        if economy.is_weighted
        else "the sum of the workers' utilities"
    )
    start = percentages([HUNDRED // 2] * len(economy.floors))
    goal = {
        PLANNER: "You are the planner: make welfare, summed over all periods, as large as you can. After each period "
        "you read every worker's income and the welfare. "
        f"Answer with the rates in percent{', the lowest bracket first,' if several else ''} in brackets, such as "
        f"[{start}].",
        WORKER: "You are a worker: make your utility, summed over all periods, as large as you can. "
        f"Answer with your hours in brackets, such as [{LONGEST // 2}].",
    }[role]
    return (
        f"An economy of {economy.workers} workers and a planner, for {periods} periods. In each, the planner sets tax "
        f"rates that all read; then all workers choose at once how many hours they work, from 0 to {LONGEST}. A worker "
        f"earns its skill times its hours. Skills are whole numbers from {low} to {high} that nobody else knows; small "
        f"ones are more likely, as the logarithm is uniform. {brackets} Rates start at {HUNDRED // 2}%; they are "
        f"multiples of {RATE_STEP} from 0 to {HUNDRED}, and each changes by at most {largest} in a period. {shared}\n"
        f"A worker's utility is {utility}.{bent} The effort of h hours is {COST} h^3.5: {number(effort(25))} for 25 "
        f"hours, {number(effort(50))} for 50, {number(effort(75))} for 75, {number(effort(LONGEST))} for {LONGEST}. "
        f"Welfare is {welfare}.\n{goal}"
    )
