"""Base of games in which all seats name a number at once, for some rounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.options import Options as BaseOptions
from turngym.options import between
from turngym.types import JSONValue


class NumberGame(Game):
    """All seats name a whole number at once; rewards are the payoffs of each round, the score is their mean.

    The seats with the largest sum have won, unless all have the same. A seat that forfeits loses 1 and earns nothing
    more; the others continue with 0 as its number. The anchor is the list of all numbers so far.
    """

    class Options(BaseOptions):
        num_seats: Annotated[int, between(2, 10)] = 4
        """Number of seats."""
        rounds: Annotated[int, between(1, 100)] = 10
        """Rounds of a game."""

    options: Options
    file_options = worded()
    is_simultaneous = True
    verb: str
    """Word for naming a number."""

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(self.options.num_seats)
        self.numbers: list[list[int]] = []
        """The numbers of all seats in every round that is over."""
        self._paid_rounds = [0] * self.num_seats
        self.actions = tuple(map(str, range(self.highest + 1)))
        self._meanings = {
            form: each for each in self.actions for form in (each, f"{self.verb} {each}", f"i {self.verb} {each}")
        }
        low, high = self.payoff_range
        self.score_range = min(low, 0.0), high  # a seat that forfeits earns nothing more

    _constructor = __init__

    @property
    @abstractmethod
    def highest(self) -> int:
        """Largest number."""

    @property
    @abstractmethod
    def payoff_range(self) -> tuple[float, float]:
        """Lowest and highest payoff of a round."""

    @abstractmethod
    def rules(self) -> str:
        """Return what a round pays."""

    @abstractmethod
    def exact_payoffs(self, numbers: Sequence[int]) -> list[Fraction]:
        """Return the payoff of each seat in a round, as fractions: the winners do not depend on rounding."""

    def payoffs(self, numbers: Sequence[int]) -> list[float]:
        """Return the payoff of each seat in a round."""
        return [float(each) for each in self.exact_payoffs(numbers)]

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        rounds = "one round:" if self.options.rounds == 1 else f"{self.options.rounds} rounds. In each,"
        return (
            f"{self.num_seats} players, {rounds} every player names a whole number from 0 to {self.highest} "
            f"at once, without seeing those of the others. {self.rules()}\n"
            f"Answer with a number in brackets, such as [{self.highest // 2}]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start the first round; there are no options."""
        self.require_known(options)
        self.news.clear()
        self.numbers, self._paid_rounds = [], [0] * self.num_seats
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}.")

    def asked(self) -> tuple[int, ...]:
        """Return all seats."""
        return self.everyone if len(self.numbers) < self.options.rounds else ()

    def prompt(self, seat: int) -> str:
        """Return the round and the question."""
        return f"Round {len(self.numbers) + 1} of {self.options.rounds}. Which number from 0 to {self.highest}?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return all numbers."""
        return self.actions

    def read(self, seat: int, text: str) -> str:
        """Return the number that an answer names."""
        try:
            return read_choice(text, self._meanings)
        except InvalidAction as error:
            raise InvalidAction(f"{error.reason} Name a whole number from 0 to {self.highest}.", error.kind) from None

    def default(self, seat: int) -> str:
        """Return 0, the number of a seat that has forfeited."""
        return "0"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Pay for the numbers."""
        numbers = [int(actions[seat]) for seat in self.everyone]
        self.numbers.append(numbers)
        paid = self.payoffs(numbers)
        shown = [f"{self.seats[seat]} {numbers[seat]} ({paid[seat]:.6g})" for seat in self.everyone]
        self.tell(self.everyone, f"Round {len(self.numbers)}: {', '.join(shown)}.")
        for seat in self.everyone:
            self._paid_rounds[seat] += seat not in self.forfeited
        return paid

    def anchor(self, seat: int) -> str:
        """Return the numbers of every round."""
        shown = "; ".join([" ".join(map(str, each)) for each in self.numbers])
        return f"you are {self.seats[seat]}: {shown or 'no numbers'}"

    def progress(self, seat: int) -> float:
        """Return the share of the rounds that are over."""
        return len(self.numbers) / self.options.rounds

    def winners(self) -> tuple[int, ...]:
        """Return the seats with the largest sum at the end; nobody if all have the same."""
        left = [seat for seat in self.everyone if seat not in self.forfeited]
        if self.asked() or not left:
            return ()
        earned = self._earned()
        best = max(earned[seat] for seat in left)
        found = tuple([seat for seat in left if earned[seat] == best])
        return found if len(found) < self.num_seats else ()

    def score(self, seat: int) -> float:
        """Return the mean payoff of the rounds."""
        rounds = self.options.rounds if self.forfeited else max(1, len(self.numbers))
        return float(self._earned()[seat] / rounds)

    def _earned(self) -> list[Fraction]:
        """Return the sum of each seat's payoffs, up to the round in which it forfeited."""
        paid = list(map(self.exact_payoffs, self.numbers))
        return [sum((each[seat] for each in paid[:count]), Fraction(0)) for seat, count in enumerate(self._paid_rounds)]

    def metrics(self) -> dict[str, float]:
        """Return the mean number, and the mean payoff of all seats."""
        named = [number for numbers in self.numbers for number in numbers]
        return {
            "mean_number": sum(named) / max(1, len(named)),
            "mean_payoff": float(sum(self._earned()) / max(1, len(self.numbers)) / self.num_seats),
        }

    def state(self) -> JSONValue:
        """Return numbers, and how many rounds were paid to each seat."""
        return {"numbers": [list(each) for each in self.numbers], "paid_rounds": list(self._paid_rounds)}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        numbers = [[int(number) for number in each] for each in state["numbers"]]
        if any(len(each) != self.num_seats or not all(0 <= n <= self.highest for n in each) for each in numbers):
            raise ValueError(f"the numbers {state['numbers']!r}")
        paid = [int(count) for count in state["paid_rounds"]]
        if len(paid) != self.num_seats or not all(0 <= count <= len(numbers) for count in paid):
            raise ValueError(f"the paid rounds {state['paid_rounds']!r}")
        self.numbers, self._paid_rounds = numbers, paid


def history(view: SeatView) -> list[list[int]]:
    """Return the numbers of every round that the anchor of a seat shows.

    The seat's own are at its place.
    """
    shown = view.anchor.partition(": ")[2]
    return [] if shown == "no numbers" else [list(map(int, each.split())) for each in shown.split("; ")]


class NumberPlayer(Player):
    """Names a number by the numbers of all rounds so far."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Find the largest number."""
        self.highest = max(map(int, view.legal_actions))

    def act(self, view: SeatView) -> str:
        """Return a number."""
        return str(self.number(view.seat, history(view)))

    @abstractmethod
    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return the number to name."""


class ZeroPlayer(NumberPlayer):
    """Names 0, the equilibrium."""

    name = "equilibrium"

    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return 0."""
        return 0
