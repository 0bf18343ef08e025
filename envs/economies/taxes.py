"""Workers choose hours, and a planner chooses tax rates: the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from turngym.envs.economies.labour import HUNDRED, LOG_SCALE, LONGEST, RATE_STEP, Economy, Rates, effort
from turngym.envs.economies.tax_scores import HIGHEST_SCORE, Course, Round, first_rates
from turngym.envs.economies.tax_text import (
    HOURS,
    PLANNER,
    WORKER,
    instructions,
    number,
    percentages,
    rate_meanings,
    schedule,
)
from turngym.envs.multiagent.game import FORFEITED, Game, InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

LOWEST_SKILL, HIGHEST_SKILL = 10, 120
FLOORS = {"flat": (0,), "two": (0, 2000), "three": (0, 1000, 4000)}
"""Incomes at which brackets begin."""
_PLAYERS = "turngym.envs.economies.tax_players"
_LEGAL_HOURS = tuple(dict.fromkeys(HOURS.values()))


class Taxes(Game):
    """Stackelberg game of the LLM Economist in small: a planner sets tax rates, then workers choose their hours.

    Skills are hidden from all others; incomes are read by the planner alone. Utility and effort are those of
    arXiv 2507.15815, with brackets and periods for a few workers. Linear utility has no effect of income, so that a
    worker's best hours depend on the rates alone; with equal weights (``welfare="utilitarian"``) the best rates are
    then 0. Weights are inverse to the income that a worker would choose without taxes: those by actual income would
    reward a planner that makes workers poor. With ``utility="log"``, logarithmic in income net of effort, the best
    hours are the same, and equal weights have a best rate above 0 too.

    With some options constant rates succeed that need no knowledge of skills, so that a planner's success says little
    there: if workers choose their best hours, it is enough to keep the first rates of 50% in 99% of games with
    ``welfare="utilitarian"``, in all of them with ``utility="log"`` too, and to move to 80% in 90% of games with
    ``brackets="flat"`` and weights. By default a rate of 80% for both brackets succeeds in 61%. Compare a planner with
    the player ``steady``.

    Rewards, after each period, are a worker's utility, or the mean of the weighted utilities for the planner, divided
    by 1000. The score of the planner is welfare, divided by that of rates that move to the best constant ones as fast
    as they may if workers choose their best hours, at most 2; that of a worker is what its hours have added to its
    utility, compared with no work, divided by what the best hours would have added. A seat with a score of at least
    ``success_score`` has won. A seat that forfeits loses what the worst choices would cost and scores 0: a planner
    keeps the rates, a worker does not work. Metrics: welfare, the best welfare, mean income, equality of incomes net of
    taxes, mean rates. The anchor is all that a seat has read and chosen.

    A game has 8 periods: a planner answers 8 times with rates, a worker 8 times with hours. In 200 games with
    ``rational`` in all seats the planner and a worker always succeed (welfare 7,208 of a best of 7,365), with
    ``random`` in all seats never (2,876). More pairings: section Economies of ``benchmarks/results/README.md``.

    >>> game = Taxes(workers=2, periods=1)
    >>> game.begin(np.random.default_rng(0), {"skills": [40, 80]})
    >>> game.commit({2: "50 50"}), game.asked()
    ([0.0, 0.0, 0.0], (0, 1))
    >>> [round(each, 3) for each in game.commit({0: "50", 1: "60"})]
    [2.258, 3.263, 2.534]
    """

    name = "taxes"
    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("echo of the rules", "longest text", "last winner's first action", "winners' most frequent action"),
        "random hours are often far too many for a low skill, so that a constant number between costs less.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "rational": f"{_PLAYERS}:Rational",
        "saez": f"{_PLAYERS}:Saez",
        "steady": f"{_PLAYERS}:Steady",
    }

    class Options(BaseOptions):
        workers: Annotated[int, between(2, 8)] = 4
        """Number of workers; the planner is one seat more."""
        periods: Annotated[int, between(1, 50)] = 8
        """Periods of a game."""
        brackets: Literal["flat", "two", "three"] = "two"
        """Brackets of income: one, from 0 and 2000, or from 0, 1000 and 4000."""
        rebate: Literal["equal", "others"] = "equal"
        """Taxes are shared equally by all workers, or those of each by the others alone."""
        utility: Literal["linear", "log"] = "linear"
        """Utility of income net of effort."""
        welfare: Literal["weighted", "utilitarian"] = "weighted"
        """Sum of utilities with weights inverse to income without taxes, or with equal ones."""
        largest_change: Annotated[int, between(10, 30)] = 20
        """Largest change of a rate in a period, in percent; a multiple of 10."""
        success_score: Annotated[float, between(0.01, 1)] = 0.95
        """Lowest score of a success."""

        def check(self) -> None:
            if self.largest_change % RATE_STEP:
                raise OptionError("largest_change", f"must be a multiple of {RATE_STEP}, got {self.largest_change}.")

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        chosen = self.options
        super().__init__(chosen.workers + 1)
        self.score_range = 0.0, HIGHEST_SCORE
        self.planner = chosen.workers
        self.workers = tuple(range(chosen.workers))
        self.economy = Economy(
            chosen.workers,
            FLOORS[chosen.brackets],
            chosen.rebate == "equal",
            chosen.utility == "log",
            chosen.welfare == "weighted",
        )
        self._set_up([LOWEST_SKILL] * chosen.workers)

    _constructor = __init__

    def _set_up(self, skills: list[int]) -> None:
        self.skills = skills
        self.rates: Rates = first_rates(self.economy)
        """Rates in force."""
        self.is_set = False
        """Whether the planner has set the rates of this period."""
        self.rounds: list[Round] = []
        """The periods that are over."""
        self._count()

    def _count(self) -> None:
        """Compute what the choices of all periods bring."""
        self._course = Course(self.economy, self.skills, self.rounds)
        self._scores: list[float] | None = None

    def instructions(self, seat: int) -> str:
        """Return the rules for a worker or the planner."""
        skills = LOWEST_SKILL, HIGHEST_SKILL
        return instructions(self.role(seat), self.economy, skills, self.options.periods, self.options.largest_change)

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw the skills; ``{"skills": [10, 20, 40, 80]}`` fixes them."""
        self.require_known(options, ["skills"])
        self.news.clear()
        self._set_up(self._fixed(options["skills"]) if "skills" in options else self._drawn(generator))
        for seat in self.workers:
            self.tell((seat,), f"You are {self.seats[seat]}, a worker with skill {self.skills[seat]}.")
        self.tell((self.planner,), f"You are {self.seats[self.planner]}, the planner.")

    def _drawn(self, generator: np.random.Generator) -> list[int]:
        spread = HIGHEST_SKILL / LOWEST_SKILL
        return [round(LOWEST_SKILL * spread**share) for share in generator.random(self.options.workers).tolist()]

    def _fixed(self, given: Any) -> list[int]:
        """Return skills that options fix.

        Raises:
            ConfigError: They are none.
        """
        if not isinstance(given, list | tuple) or not _are_counts(given, self.planner, LOWEST_SKILL, HIGHEST_SKILL):
            wanted = f"{self.planner} whole numbers from {LOWEST_SKILL} to {HIGHEST_SKILL}"
            raise ConfigError(f"skills of {self.name} must be a list of {wanted}, got {given!r:.80}.")
        return list(given)

    # Decisions.

    @property
    def _is_over(self) -> bool:
        return len(self.rounds) == self.options.periods

    def phase(self) -> str:
        """Return ``"rates"``, ``"hours"`` or ``"over"``."""
        return "over" if self._is_over else "hours" if self.is_set else "rates"

    def role(self, seat: int) -> str:
        """Return ``"worker"`` or ``"planner"``."""
        return PLANNER if seat == self.planner else WORKER

    def asked(self) -> tuple[int, ...]:
        """Return the planner, then all workers."""
        return () if self._is_over else self.workers if self.is_set else (self.planner,)

    def prompt(self, seat: int) -> str:
        """Return the period and the question."""
        start = f"Period {len(self.rounds) + 1} of {self.options.periods}."
        if seat == self.planner:
            allowed = f"each may change by at most {self.options.largest_change}"
            return f"{start} The rates are {schedule(self.rates, self.economy.floors)}; {allowed}. Which rates?"
        rates = schedule(self.rates, self.economy.floors)
        return f"{start} Tax rates: {rates}. How many hours do you work, from 0 to {LONGEST}?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return all hours, or all rates that are close enough to the last ones."""
        if seat != self.planner:
            return _LEGAL_HOURS
        most = self.options.largest_change
        near = [range(max(0, rate - most), min(HUNDRED, rate + most) + 1, RATE_STEP) for rate in self.rates]
        return tuple(map(percentages, product(*near)))

    def read(self, seat: int, text: str) -> str:
        """Return the hours or rates that an answer names."""
        is_planner = seat == self.planner
        try:
            found = read_choice(text, rate_meanings(len(self.economy.floors)) if is_planner else HOURS)
        except InvalidAction as error:
            count = len(self.economy.floors)
            wanted = (
                f"{count} multiples of {RATE_STEP} from 0 to {HUNDRED}, such as [{percentages(self.rates)}]"
                if is_planner
                else f"a whole number from 0 to {LONGEST}"
            )
            raise InvalidAction(f"{error.reason} Name {wanted}.", error.kind) from None
        if is_planner and any(abs(new - old) > self.options.largest_change for new, old in self._changes(found)):
            most = self.options.largest_change
            now = percentages(self.rates)
            raise InvalidAction(f"A rate may change by at most {most}: the rates are {now}, and you said {found}.")
        return found

    def _changes(self, action: str) -> list[tuple[int, int]]:
        return list(zip(map(int, action.split()), self.rates, strict=True))

    def default(self, seat: int) -> str:
        """Return what a seat does that has forfeited: the planner keeps the rates, a worker does not work."""
        return percentages(self.rates) if seat == self.planner else "0"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Set the rates, or take a period."""
        if not self.is_set:
            self.rates, self.is_set = tuple(map(int, actions[self.planner].split())), True
            return [0.0] * self.num_seats
        self.rounds.append(Round(self.rates, tuple([int(actions[seat]) for seat in self.workers])))
        self.is_set = False
        self._count()
        period = self._course.periods[-1]
        welfare = self.economy.welfare(self.skills, period.utilities)
        start = f"Period {len(self.rounds)}:"
        for seat in self.workers:
            tax, back, cost = period.taxes[seat] / HUNDRED, period.rebates[seat], period.efforts[seat]
            earned = f"you earned {period.incomes[seat]}, paid {number(tax)} in taxes and got {number(back)} back"
            utility = number(period.utilities[seat])
            self.tell((seat,), f"{start} {earned}; your effort cost {number(cost)}. Your utility: {utility}.")
        incomes = ", ".join([f"{self.seats[seat]} {period.incomes[seat]}" for seat in self.workers])
        self.tell((self.planner,), f"{start} incomes were {incomes}. Welfare: {number(welfare)}.")
        return [each / LOG_SCALE for each in (*period.utilities, welfare / len(self.workers))]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Take from seats what the worst choices in all periods left would cost."""
        for seat in seats:
            self.tell((seat,), FORFEITED)
        left = self.options.periods - len(self.rounds)
        return [-effort(LONGEST) / LOG_SCALE * left if seat in seats else 0.0 for seat in self.everyone]

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return the rates, and what a seat has read and chosen in each period."""
        lines = [f"{self.role(seat)}, rates {percentages(self.rates)}{' set' if self.is_set else ''}"]
        if seat != self.planner:
            lines[0] += f", skill {self.skills[seat]}"
        for choices, period in zip(self.rounds, self._course.periods, strict=True):
            rates = percentages(choices.rates)
            if seat == self.planner:
                welfare = number(self.economy.welfare(self.skills, period.utilities))
                lines.append(f"rates {rates}, incomes {percentages(period.incomes)}, welfare {welfare}")
            else:
                lines.append(f"rates {rates}, hours {choices.hours[seat]}, got {number(period.rebates[seat])}")
        return "\n".join(lines)

    def progress(self, seat: int) -> float:
        """Return the share of the periods that are over."""
        return len(self.rounds) / self.options.periods

    def winners(self) -> tuple[int, ...]:
        """Return the seats with a score that is a success."""
        least = self.options.success_score
        return tuple([seat for seat in self.everyone if self.score(seat) >= least]) if self._is_over else ()

    def score(self, seat: int) -> float:
        """Return welfare or added utility, divided by the best; 0 for a seat that has forfeited."""
        if seat in self.forfeited or not self.rounds:
            return 0.0
        if self._scores is None:
            planner = self._course.planner_score(self.options.largest_change)
            self._scores = [*map(self._course.worker_score, self.workers), planner]
        return self._scores[seat]

    def metrics(self) -> dict[str, float]:
        """Return welfare and its best, mean income, equality of incomes net of taxes, and mean rates."""
        return self._course.metrics()

    def state(self) -> JSONValue:
        """Return skills, rates, and the periods that are over."""
        return {
            "skills": list(self.skills),
            "rates": list(self.rates),
            "is_set": self.is_set,
            "rounds": [[list(each.rates), list(each.hours)] for each in self.rounds],
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        skills, rates, is_set, rounds = (state[name] for name in ("skills", "rates", "is_set", "rounds"))
        if not isinstance(skills, list) or not _are_counts(skills, self.planner, LOWEST_SKILL, HIGHEST_SKILL):
            raise ValueError(f"the skills {skills!r:.200}")
        if not isinstance(is_set, bool) or not isinstance(rounds, list) or len(rounds) + is_set > self.options.periods:
            raise ValueError(f"{rounds!r:.200} rounds")
        last: Sequence[int] = first_rates(self.economy)
        for chosen, hours in [*rounds, [rates, [0] * self.planner]]:
            most = self.options.largest_change
            if not _are_counts(chosen, len(last), 0, HUNDRED) or any(each % RATE_STEP for each in chosen):
                raise ValueError(f"the rates {chosen!r:.200}")
            if any(abs(new - old) > most for new, old in zip(chosen, last, strict=True)):
                raise ValueError(f"the rates {chosen!r:.200} after {last!r:.200}")
            if not _are_counts(hours, self.planner, 0, LONGEST):
                raise ValueError(f"the hours {hours!r:.200}")
            last = chosen
        if not is_set and tuple(rounds[-1][0] if rounds else first_rates(self.economy)) != tuple(rates):
            raise ValueError(f"the rates {rates!r:.200} before they are set")
        self.skills, self.rates, self.is_set = list(skills), tuple(rates), is_set
        self.rounds = [Round(tuple(chosen), tuple(hours)) for chosen, hours in rounds]
        self._count()

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw the skills of others again, or exchange workers that a seat cannot tell apart.

        After a period the planner knows incomes, and a worker the sum of the others' taxes, so that a worker's others
        exchange skills and hours; those that have forfeited remain.
        """
        if self._is_over:
            return False
        before = self.state()
        if not self.rounds:
            drawn = self._drawn(generator)
            self.skills = [self.skills[each] if each == seat else drawn[each] for each in self.workers]
        elif seat != self.planner:
            others = [each for each in self.workers if each != seat and each not in self.forfeited]
            drawn = [others[place] for place in generator.permutation(len(others)).tolist()]
            source = dict(zip(others, drawn, strict=True))
            order = [source.get(each, each) for each in self.workers]
            self.skills = [self.skills[each] for each in order]
            self.rounds = [Round(each.rates, tuple([each.hours[place] for place in order])) for each in self.rounds]
        self._count()
        return bool(self.state() != before)


def _are_counts(given: Any, count: int, low: int, high: int) -> bool:
    """Return whether a value is a list of so many whole numbers in a range."""
    is_list = isinstance(given, list | tuple) and len(given) == count
    return is_list and all(type(each) is int and low <= each <= high for each in given)
