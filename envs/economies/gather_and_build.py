"""Gather, build, trade and tax: the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.economies import gather_text
from turngym.envs.economies.gather_text import coins
from turngym.envs.economies.inequality import equality
from turngym.envs.economies.labour import Economy, Rates
from turngym.envs.economies.settlement import (
    HUNDRED,
    LABOUR,
    LARGEST_PRICE,
    MOVES,
    QUARTERS,
    RESOURCES,
    STAY,
    WORKERS,
    Settlement,
    Talents,
    utility,
)
from turngym.envs.economies.tax_text import PLANNER, WORKER, percentages, rate_meanings, schedule
from turngym.envs.multiagent.game import FORFEITED, Game, InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

FLOORS = (0, 20)
"""Coins at which the brackets begin."""
_PLAYERS = "turngym.envs.economies.gather_players"
_ORDERS = [
    f"{side} {resource} {price}"
    for side in ("buy", "sell")
    for resource in RESOURCES
    for price in range(1, LARGEST_PRICE + 1)
]
_MEANINGS = (
    {form: action for action in (*MOVES, STAY, "build") for form in (action, f"go {action}", f"move {action}")}
    | {form: order for order in _ORDERS for form in (order, f"{order} coins", " for ".join(order.rsplit(" ", 1)))}
    | {"build a house": "build", "wait": STAY}
)
_RATES = rate_meanings(len(FLOORS))
_TAX = Economy(WORKERS, tuple([HUNDRED * floor for floor in FLOORS]))
_LOWEST, _HIGHEST = -200.0, 1000.0


class GatherAndBuild(Game):
    """Two workers gather wood and stone, build houses and trade, and a planner taxes their income.

    Rules after the AI Economist (Zheng et al., 2020) on a grid of 7 x 7: houses pay by a hidden skill, labour costs
    utility, and utility of coins is isoelastic. The planner sets two marginal rates for each tax period; taxes are
    shared equally.

    The reward of a worker is the change of its utility; that of the planner, after each tax, the change of equality
    times mean coins, divided by 10. Equality is 1 minus the Gini coefficient times n / (n - 1), so that with two
    workers the product is the coins of the poorer one. The score of a worker is its utility at the end less that of the
    start, that of the planner equality times mean coins; a worker has won with a score of at least ``success_utility``,
    the planner with ``success_welfare``. A seat that forfeits loses what the worst choices would cost and does nothing,
    or keeps the rates. Metrics: mean coins, equality, welfare, mean utility gained and labour, houses, trades. The
    anchor is the step, the map, the open orders, the rates, and what the seat has.

    A game has 50 steps: a worker answers 50 times, the planner before the first step and in the middle. In 200 games
    with ``greedy`` in all seats the planner succeeds in 97 % and a worker in 99 %, with ``random`` in all seats never.
    More pairings: section Economies of ``benchmarks/results/README.md``.

    >>> game = GatherAndBuild(steps=10, tax_period=5)
    >>> game.begin(np.random.default_rng(0), {})
    >>> game.commit({2: "20 40"}), game.asked(), len(game.grid.board())
    ([0.0, 0.0, 0.0], (0, 1), 7)
    """

    name = "gather_and_build"
    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = {
        "alphabetically first": "workers that reason do most without taxes, the first of all rates.",
        "winners' most frequent action": "staying costs no labour, and random play works for nothing.",
    }
    players: ClassVar[Mapping[str, str]] = {
        "greedy": f"{_PLAYERS}:Greedy",
        "trader": f"{_PLAYERS}:Trader",
        "untaxed": f"{_PLAYERS}:Untaxed",
    }

    class Options(BaseOptions):
        steps: Annotated[int, between(5, 200)] = 50
        """Steps of a game."""
        tax_period: Annotated[int, between(5, 200)] = 25
        """Steps from a tax to the next; they divide the steps of a game."""
        sources: Annotated[int, between(1, 12)] = 6
        """Cells of wood, and of stone."""
        regrowth: Annotated[float, between(0, 1)] = 0.05
        """Chance that a gathered resource grows again, in each step."""
        success_utility: Annotated[float, between(0, 1000)] = 12.0
        """Lowest score of a worker's success."""
        success_welfare: Annotated[float, between(0, 1000)] = 60.0
        """Lowest score of a planner's success."""

        def check(self) -> None:
            if self.steps % self.tax_period:
                raise OptionError("tax_period", f"must divide {self.steps}, the steps, got {self.tax_period}.")

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(WORKERS + 1)
        self.planner = WORKERS
        self.score_range = _LOWEST, _HIGHEST
        self._generator = np.random.default_rng(0)
        self._set_up(Settlement({}, [0, 1], [Talents(1000, 50)] * WORKERS))

    _constructor = __init__

    def _set_up(self, grid: Settlement) -> None:
        self.grid = grid
        self.rates: Rates = (0,) * len(FLOORS)
        """Rates in force; before the first decision 0."""
        self.is_set = False
        """Whether the planner has set the rates of this tax period."""
        self.step = 0
        """Steps that are over."""
        self.base = [0] * WORKERS
        """Coins of each worker after the last tax, in hundredths."""
        self.trades = 0

    def instructions(self, seat: int) -> str:
        """Return the rules for a worker or the planner."""
        chosen = self.options
        return gather_text.instructions(self.role(seat), chosen.steps, chosen.tax_period, FLOORS, chosen.regrowth)

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw the map and talents; ``{"pay": [10, 30]}`` fixes the coins that a house pays each worker."""
        self.require_known(options, ["pay"])
        self.news.clear()
        self._generator = generator
        talents = [Talents.draw(generator) for _ in range(WORKERS)]
        if "pay" in options:
            talents = [each._replace(pay=pay) for each, pay in zip(talents, self._fixed(options["pay"]), strict=True)]
        self._set_up(Settlement.draw(generator, self.options.sources, talents))
        for seat, letter in enumerate("AB"):
            self.tell((seat,), f"You are {self.seats[seat]}, the worker {letter}. {self._talent(seat)}")
        self.tell((self.planner,), f"You are {self.seats[self.planner]}, the planner.")

    def _fixed(self, given: Any) -> list[int]:
        """Return payments that options fix, in hundredths.

        Raises:
            ConfigError: They are none.
        """
        is_list = isinstance(given, list | tuple) and len(given) == WORKERS
        if not is_list or not all(type(each) is int and 10 <= each <= 30 for each in given):
            raise ConfigError(f"pay of {self.name} must be a list of 2 whole numbers from 10 to 30, got {given!r:.80}.")
        return [HUNDRED * each for each in given]

    def _talent(self, seat: int) -> str:
        talent = self.grid.talents[seat]
        return f"A house pays you {coins(talent.pay)}; {talent.bonus}% of your gathers bring two units."

    # Decisions.

    @property
    def _is_over(self) -> bool:
        return self.step == self.options.steps

    def phase(self) -> str:
        """Return ``"rates"``, ``"work"`` or ``"over"``."""
        return "over" if self._is_over else "work" if self.is_set else "rates"

    def role(self, seat: int) -> str:
        """Return ``"worker"`` or ``"planner"``."""
        return PLANNER if seat == self.planner else WORKER

    def asked(self) -> tuple[int, ...]:
        """Return the planner, or both workers."""
        return () if self._is_over else tuple(range(WORKERS)) if self.is_set else (self.planner,)

    def prompt(self, seat: int) -> str:
        """Return what the seat sees and the question."""
        question = "Which rates?" if seat == self.planner else "What do you do?"
        return f"{self.anchor(seat)}\n{question}"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return all rates, or what the worker can do."""
        return tuple(dict.fromkeys(_RATES.values())) if seat == self.planner else self.grid.allowed(seat)

    def read(self, seat: int, text: str) -> str:
        """Return the action or rates that an answer names."""
        is_planner = seat == self.planner
        try:
            found = read_choice(text, _RATES if is_planner else _MEANINGS)
        except InvalidAction as error:
            actions = f"{', '.join(MOVES)}, build, stay, or an order such as [sell wood 3]"
            wanted = "2 multiples of 10 from 0 to 100, such as [20 40]" if is_planner else actions
            raise InvalidAction(f"{error.reason} Name {wanted}.", error.kind) from None
        if not is_planner and found not in self.grid.allowed(seat):
            raise InvalidAction(f"You cannot {found} now.")
        return found

    def default(self, seat: int) -> str:
        """Return what a seat does that has forfeited: nothing, or the same rates."""
        return percentages(self.rates) if seat == self.planner else STAY

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Set the rates, or take a step: actions, growth, and taxes where they are due."""
        if not self.is_set:
            self.rates, self.is_set = tuple(map(int, actions[self.planner].split())), True
            rates = ", ".join([f"{self.rates[0]}% up to {FLOORS[1]} coins", f"{self.rates[1]}% above"])
            self.tell(self.everyone, f"The planner sets tax rates: {rates}.")
            return [0.0] * self.num_seats
        before, welfare = [self._utility(worker) for worker in range(WORKERS)], 0.0
        luck = self._generator.random(WORKERS).tolist()
        first = self.step % WORKERS
        for worker in (first, 1 - first):
            for to, line in self.grid.act(worker, actions[worker], luck[worker]):
                self.trades += " sells " in line
                self.tell(to or self.everyone, line)
        self.grid.regrow(self.options.regrowth, self._generator)
        self.step += 1
        if self.step % self.options.tax_period == 0:
            welfare = self._tax() / 10
        return [*[self._utility(worker) - before[worker] for worker in range(WORKERS)], welfare]

    def _utility(self, worker: int) -> float:
        return utility(self.grid.coins[worker] / HUNDRED, self.grid.labour[worker] / QUARTERS)

    def _tax(self) -> float:
        """Tax what has been earned, and return how much welfare has grown since the last tax."""
        before = self._welfare_of(self.base)
        incomes = [max(0, now - then) for now, then in zip(self.grid.coins, self.base, strict=True)]
        taxes = [tax // HUNDRED for tax in _TAX.taxes(incomes, self.rates)]
        total = sum(taxes)
        shares = [total // WORKERS + (worker < total % WORKERS) for worker in range(WORKERS)]
        self.grid.orders = []
        for worker in range(WORKERS):
            self.grid.coins[worker] += shares[worker] - taxes[worker]
            income, tax, share = (coins(each) for each in (incomes[worker], taxes[worker], shares[worker]))
            self.tell((worker,), f"Taxes: you earned {income}, paid {tax} and got {share} back.")
        self.base, self.is_set = list(self.grid.coins), False
        earned, owned = (
            ", ".join([f"{self.seats[worker]} {coins(each[worker])}" for worker in range(WORKERS)])
            for each in (incomes, self.base)
        )
        self.tell((self.planner,), f"Taxes: incomes were {earned}; coins are now {owned}.")
        return self._welfare_of(self.base) - before

    @staticmethod
    def _welfare_of(coins: Sequence[int]) -> float:
        return equality(coins) * sum(coins) / (HUNDRED * WORKERS)

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Take from seats what the worst choices in all steps left would cost."""
        left, lost = self.options.steps - self.step, [0.0] * self.num_seats
        for seat in seats:
            self.tell((seat,), FORFEITED)
            if seat == self.planner:
                lost[seat] = -self._welfare_of(self.base) / 10
            else:
                labour = self.grid.labour[seat] + LABOUR["build"] * left
                lost[seat] = utility(0, labour / QUARTERS) - self._utility(seat)
        return lost

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return the step, the map, orders, rates, and what a seat has."""
        step = "The game is over." if self._is_over else f"Step {self.step + 1} of {self.options.steps}."
        lines = [step, *self.grid.board(), self.grid.ground(), f"orders: {gather_text.shown_orders(self.grid.orders)}"]
        lines.append(f"tax rates: {schedule(self.rates, FLOORS) if self.is_set else 'not set'}")
        if seat == self.planner:
            return "\n".join([*lines, f"coins after the last tax: {' '.join(map(coins, self.base))}"])
        grid = self.grid
        held = ", ".join([f"{units} {resource}" for resource, units in grid.held[seat].items()])
        earned = coins(grid.coins[seat] - self.base[seat])
        has = f"you have {held}, {coins(grid.coins[seat])} coins, {earned} of them since the last tax"
        return "\n".join([*lines, f"{has}; labour {grid.labour[seat] / QUARTERS:g}", self._talent(seat)])

    def progress(self, seat: int) -> float:
        """Return the share of the steps that are over."""
        return self.step / self.options.steps

    def winners(self) -> tuple[int, ...]:
        """Return the workers with enough utility, and the planner with enough welfare."""
        chosen = self.options
        least = [*[chosen.success_utility] * WORKERS, chosen.success_welfare]
        return tuple([seat for seat in self.everyone if self.score(seat) >= least[seat]]) if self._is_over else ()

    def score(self, seat: int) -> float:
        """Return the utility that a worker has gained, or equality times mean coins."""
        if seat == self.planner:
            return 0.0 if seat in self.forfeited else min(self._welfare_of(self.grid.coins), _HIGHEST)
        if seat in self.forfeited:
            return _LOWEST
        return min(max(self._utility(seat) - utility(0, 0), _LOWEST), _HIGHEST)

    def metrics(self) -> dict[str, float]:
        """Return mean coins and labour, equality, houses, trades, and what the workers have gained on average."""
        grid = self.grid
        return {
            "coins": sum(grid.coins) / (HUNDRED * WORKERS),
            "equality": equality(grid.coins),
            "welfare": self._welfare_of(grid.coins),
            "utility": sum([self._utility(worker) - utility(0, 0) for worker in range(WORKERS)]) / WORKERS,
            "labour": sum(grid.labour) / (QUARTERS * WORKERS),
            "houses": float(len(grid.houses)),
            "trades": float(self.trades),
        }

    def state(self) -> JSONValue:
        """Return the settlement, rates, and what is counted."""
        return {
            "grid": self.grid.state(),
            "rates": list(self.rates),
            "is_set": self.is_set,
            "step": self.step,
            "base": list(self.base),
            "trades": self.trades,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        rates, is_set, step, base, trades = (state[name] for name in ("rates", "is_set", "step", "base", "trades"))
        grid = Settlement.restored(state["grid"])
        are_rates = isinstance(rates, list) and all(type(rate) is int for rate in rates)
        if not are_rates or percentages(rates) not in _RATES.values() or not isinstance(is_set, bool):
            raise ValueError(f"the rates {rates!r:.200}")
        if (
            type(step) is not int
            or not 0 <= step <= self.options.steps
            or (step % self.options.tax_period and not is_set)
        ):
            raise ValueError(f"the step {step!r:.200}")
        if is_set and step == self.options.steps:
            raise ValueError("rates that are set after the last step")
        if len(base) != WORKERS or not all(type(each) is int and 0 <= each < 10**9 for each in (*base, trades)):
            raise ValueError(f"the coins {base!r:.200} and {trades!r:.200} trades")
        self.grid, self.rates, self.is_set, self.step = grid, tuple(rates), is_set, step
        self.base, self.trades = list(base), trades

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw the talents of others again: payments of those without a house, whose coins are not earned by them."""
        if self._is_over:
            return False
        before, talents = self.state(), self.grid.talents
        for worker in range(WORKERS):
            if worker == seat:
                continue
            drawn = Talents.draw(generator)
            is_unpaid = worker not in self.grid.houses.values()
            talents[worker] = drawn if is_unpaid else talents[worker]._replace(bonus=drawn.bonus)
        return bool(self.state() != before)
